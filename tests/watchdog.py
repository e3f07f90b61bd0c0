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

_lock = threading.Lock()
_pipe: int | None = None
_owner = 0


def _tell(line: str) -> None:
    global _pipe, _owner
    with _lock:
        if _pipe is None or _owner != os.getpid():
            reading, _pipe = os.pipe()
            _owner = os.getpid()
            subprocess.Popen(
                [sys.executable, "-S", "-E", str(Path(__file__).resolve())],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            os.close(reading)
        os.write(_pipe, line.encode() + b"\n")


def watch(pid: int) -> None:
    """Kill this process when the test process is gone."""
    _tell(f"+{pid}")


def forget(pid: int) -> None:
    """The process has ended."""
    _tell(f"-{pid}")


def watch_folder(folder: str) -> None:
    """Remove this folder when the test process is gone."""
    _tell(f">{folder}")


def _let_go() -> None:
    global _pipe
    if _pipe is not None and _owner == os.getpid():
        os.close(_pipe)
        _pipe = None


atexit.register(_let_go)


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
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
