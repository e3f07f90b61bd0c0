"""The version of the package, which is the version of the C library inside it."""

from __future__ import annotations

from cwist_jq import _lib

__all__ = ["__version__"]

__version__: str = _lib.version()
