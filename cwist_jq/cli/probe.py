"""What the probes of both engines share."""

from __future__ import annotations

__all__ = ["ProbeFailed", "Refusal"]


class ProbeFailed(Exception):
    """The server did not answer, or what it said makes no sense."""


class Refusal(ProbeFailed):
    """The server refused one question; the connection goes on."""

    def __init__(self, text: str, code: int = 0) -> None:
        """Takes the server's words, and its number for them where it has one."""
        super().__init__(text)
        self.code = code
