"""What each process notes: a line for each event, in a file of its own.

A line is written in one call and without a buffer, so a process that is killed leaves whole lines.
Moments are those of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Event", "Ledger", "read"]


@dataclass(frozen=True)
class Event:
    """One line."""

    moment: float
    #: Who noted it: "worker-7".
    who: str
    kind: str
    words: tuple[str, ...]


class Ledger:
    """The file of one process."""

    def __init__(self, folder: Path, who: str) -> None:
        self._file = os.open(folder / who, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, kind: str, *words: object) -> None:
        """Adds a line."""
        line = " ".join([f"{time.monotonic():.6f}", kind, *map(str, words)])
        os.write(self._file, f"{line}\n".encode())


def read(folder: Path) -> list[Event]:
    """All lines of all processes, by their moments."""
    events = []
    for file in folder.iterdir():
        for line in file.read_text("utf-8").splitlines():
            moment, kind, *words = line.split(" ")
            events.append(Event(float(moment), file.name, kind, tuple(words)))
    return sorted(events, key=lambda event: event.moment)
