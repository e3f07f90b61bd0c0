"""Payloads byte for byte, for files and other programs."""

from __future__ import annotations

import sys

from cwist_jq.cli import exits
from cwist_jq.cli.failure import Failure

__all__ = ["write_raw"]


def write_raw(payload: bytes) -> None:
    """Writes bytes to stdout; a terminal gets them only when all of them are text."""
    if sys.stdout.isatty() and not _is_text(payload):
        raise Failure(
            "this payload is not text and could break the terminal: redirect the output to a file",
            exits.REFUSED,
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(payload)


def _is_text(payload: bytes) -> bool:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\n\t" for character in text)
