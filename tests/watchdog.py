"""Ends the servers of a test process that died without ending them itself.

One helper process for each test process reads a pipe whose other end only the test process holds.
It is told of every server that starts and stops. When the pipe ends, it kills what is left and
removes the temp folders.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

#: Ends a process at once. Windows knows no other way to end one.
CRASH = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


class _Line:
    """The writing end of the pipe to this process's helper."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: int | None = None
        self._owner = 0
        self._helper: subprocess.Popen[bytes] | None = None

    def tell(self, line: str) -> None:
        """Sends a line; starts the helper first when this process has none yet."""
        with self._lock:
            if self._pipe is None or self._owner != os.getpid():
                reading, self._pipe = os.pipe()
                self._owner = os.getpid()
                self._helper = subprocess.Popen(
                    [sys.executable, "-S", "-E", str(Path(__file__).resolve())],
                    stdin=reading,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                os.close(reading)
                atexit.register(self._end)
            os.write(self._pipe, line.encode() + b"\n")

    def _end(self) -> None:
        """Ends the helper together with this process, unless it is the parent's."""
        if self._pipe is not None and self._helper is not None and self._owner == os.getpid():
            os.close(self._pipe)
            self._helper.wait()


_line = _Line()


def watch(pid: int) -> None:
    """Kill this process when the test process is gone."""
    _line.tell(f"+{pid}")


def forget(pid: int) -> None:
    """The process has ended."""
    _line.tell(f"-{pid}")


def watch_folder(folder: str) -> None:
    """Remove this folder when the test process is gone."""
    _line.tell(f">{folder}")


def main() -> None:
    """The helper process: listens until the pipe ends, then cleans up."""
    pids: set[int] = set()
    folders: list[str] = []
    for line in sys.stdin:
        mark, rest = line[0], line[1:].rstrip("\n")
        if mark == "+":
            pids.add(int(rest))
        elif mark == "-":
            pids.discard(int(rest))
        elif mark == ">":
            folders.append(rest)
    for pid in pids:
        try:
            os.kill(pid, CRASH)
        except ProcessLookupError:
            continue
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
