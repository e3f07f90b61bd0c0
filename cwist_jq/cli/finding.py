"""What doctor found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cwist_jq.cli.probe import Refusal

__all__ = ["Finding", "asked", "fine", "note", "warning", "wrong"]


class Finding(NamedTuple):
    """One fact, how bad it is, and what mends it."""

    level: str  # "ok", "note", "warning" or "wrong"
    check: str
    text: str
    mend: str | None = None


def fine(check: str, text: str) -> Finding:
    """As it should be."""
    return Finding("ok", check, text)


def note(check: str, text: str, mend: str | None = None) -> Finding:
    """Good to know; nothing is wrong."""
    return Finding("note", check, text, mend)


def warning(check: str, text: str, mend: str) -> Finding:
    """It works, and may surprise."""
    return Finding("warning", check, text, mend)


def wrong(check: str, text: str, mend: str) -> Finding:
    """Jobs are lost or stuck, or will be."""
    return Finding("wrong", check, text, mend)


def asked(check: str, questions: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of a check; when the server refuses to tell, that is the finding."""
    try:
        yield from questions()
    except Refusal as refusal:
        yield note(check, f"cannot tell: {refusal}")
