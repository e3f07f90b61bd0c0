"""Docstrings for Sphinx: their examples are code. That each name has one is ruff's to check."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_IN_BOTH = {"Connection", "DeadLetters", "Job", "Queue"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _begins_block(lines: list[str], place: int) -> bool:
    """Whether an indented block follows the line: an example, or one after an empty line."""
    line, *rest = lines[place:]
    if not line.endswith(":") or line.endswith("::"):
        return False
    after = next((other for other in rest if other), "")
    is_example = line.strip() == "Example:"
    return _indent(after) > _indent(line) and (is_example or not rest[0])


def _as_code(lines: list[str]) -> list[str]:
    """The lines, with blocks that are code marked as such."""
    marked: list[str] = []
    for place, line in enumerate(lines):
        marked += [f"{line}:", ""] if _begins_block(lines, place) else [line]
    return marked


def _process(
    app: Sphinx,  # noqa: ARG001 (Sphinx passes it)
    what: str,  # noqa: ARG001
    name: str,  # noqa: ARG001
    obj: Any,  # noqa: ARG001
    options: Any,  # noqa: ARG001
    lines: list[str],
) -> None:
    lines[:] = _as_code(lines)


def _name_the_plain_ones(app: Sphinx, tree: nodes.document) -> None:  # noqa: ARG001
    """A class that is in cwist_jq and in cwist_jq.aio is the former, but on the latter's page."""
    for link in tree.findall(addnodes.pending_xref):
        module = link.get("py:module") or ""
        if link["reftarget"] in _IN_BOTH and not module.startswith("cwist_jq.aio"):
            link["reftarget"] = f"cwist_jq.{link['reftarget']}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this. Our part comes before napoleon's."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("doctree-read", _name_the_plain_ones)
    return {"parallel_read_safe": True}
