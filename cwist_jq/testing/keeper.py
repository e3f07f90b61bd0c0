"""A small program that runs a server for as long as another process lives.

    python keeper.py FOLDER PROGRAM ARGUMENT…

It starts the program and listens to its own standard input, whose other end that process holds.
When the input ends, because it was closed or because the process is gone, it ends the program and
removes the folder. When the program ends first, so does the keeper.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading

_STOP = 5.0  # seconds for the program to end by itself


def main() -> None:
    """Runs the program that the arguments name."""
    folder, command = sys.argv[1], sys.argv[2:]
    stopping = threading.Event()
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 (told by the tests)
    threading.Thread(target=_watch, args=(server, stopping), daemon=True).start()
    while os.read(0, 4096):
        pass
    stopping.set()
    server.terminate()
    try:
        server.wait(_STOP)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _watch(server: subprocess.Popen[bytes], stopping: threading.Event) -> None:
    server.wait()
    if not stopping.is_set():
        os._exit(1)


if __name__ == "__main__":
    main()
