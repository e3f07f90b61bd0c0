"""Programs of the tree that are no packages, loaded as modules so that tests can look inside."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock


def load(program: Path) -> ModuleType:
    """The program as a module; it finds what lies beside it, and leaves no bytecode there."""
    spec = importlib.util.spec_from_file_location(program.stem, program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with (
        mock.patch.object(sys, "path", [str(program.parent), *sys.path]),
        mock.patch.object(sys, "dont_write_bytecode", new=True),
    ):
        spec.loader.exec_module(module)
    return module
