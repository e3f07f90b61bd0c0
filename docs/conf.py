"""How `make docs` builds the documentation. Every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import cwist_jq

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE / "extensions"))

project = "cwist_jq"
release = version = cwist_jq.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "docstrings",
    "c_headers",
]
html_theme = "furo"
html_title = f"cwist_jq {release}"
exclude_patterns = ["requirements.txt"]

# Pages are Markdown that a code host shows too. Only docs/reference has more than that.
myst_heading_anchors = 3

# Docstrings are plain text with `names`.
default_role = "literal"
smartquotes = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
