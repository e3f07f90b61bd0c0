"""Log lines on stderr."""

from __future__ import annotations

import logging

from cwist_jq.cli.text import printable

__all__ = ["log_to_stderr"]


class _Lines(logging.Formatter):
    """One line a message; what strangers wrote into it is escaped. A traceback follows as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        """Escapes the message."""
        record.message = printable(record.message)
        return super().formatMessage(record)


def log_to_stderr() -> None:
    """Sets logging up, unless the program that is run has done so."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
