"""Runs the command line as a program: through pipes, and on a terminal of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from typing import Any, Self

from tests.servers import ROOT
from tests.waiting import PATIENCE

__all__ = ["Done", "Program", "Terminal"]

_COMMAND = [sys.executable, "-m", "cwist_jq"]


@dataclass(frozen=True)
class Done:
    """What a run left."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """Its stdout."""
        return self.raw.decode()

    @property
    def records(self) -> list[dict[str, Any]]:
        """Its stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def record(self) -> dict[str, Any]:
        """Its stdout, which is one JSON line."""
        (found,) = self.records
        return found

    def good(self) -> Self:
        """The run, which must have ended well and said nothing on stderr."""
        assert (self.code, self.err) == (0, "")
        return self


class Program:
    """The command line with the URL of a server in its environment."""

    def __init__(self, url: str | None = None, **variables: str) -> None:
        self._env = {**os.environ, **variables}
        for name in ("CWIST_JQ_URL", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONWARNINGS"):
            if name not in variables:
                self._env.pop(name, None)
        self._env["PYTHONPATH"] = str(ROOT)
        if url is not None:
            self._env["CWIST_JQ_URL"] = url

    def __call__(self, *words: str, stdin: bytes = b"", cwd: Any = None) -> Done:
        """Runs it to its end, without a terminal."""
        done = subprocess.run(
            [*_COMMAND, *words],
            input=stdin,
            capture_output=True,
            env=self._env,
            cwd=cwd or ROOT,
            timeout=6 * PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode())

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Starts it with its stdout in a pipe."""
        options = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL, "cwd": ROOT, **options}
        return subprocess.Popen([*_COMMAND, *words], env=self._env, **options)

    def terminal(self, *words: str, **options: Any) -> Terminal:
        """Starts it on a terminal."""
        return Terminal([*_COMMAND, *words], {**self._env, "TERM": "xterm"}, options)


class Terminal:
    """A program on a terminal of 150 columns. Use it as a context manager."""

    def __init__(self, command: list[str], env: dict[str, str], options: dict[str, Any]) -> None:
        self._end, end = pty.openpty()
        termios.tcsetwinsize(end, (40, 150))
        streams = {"stdin": end, "stdout": end, "stderr": end, "cwd": ROOT}
        self.process = subprocess.Popen(
            # The shell's word makes the terminal the program's own, so that Ctrl-C reaches it.
            [sys.executable, "-c", _OWN_TERMINAL, *command],
            env=env,
            **{**streams, **options},
        )
        os.close(end)
        self.seen = b""

    def read(self, until: str | None = None, timeout: float = 3 * PATIENCE) -> str:
        """Reads until a text came, or the program ended; all that came so far."""
        limit = time.monotonic() + timeout
        while until is None or until.encode() not in self.seen:
            left = limit - time.monotonic()
            assert left > 0, f"{until!r} did not come: {self.seen!r}"
            if not select.select([self._end], [], [], left)[0]:
                continue
            try:
                piece = os.read(self._end, 65536)
            except OSError:  # the program ended
                piece = b""
            if not piece:
                assert until is None, f"{until!r} did not come: {self.seen!r}"
                break
            self.seen += piece
        return self.seen.decode()

    def type(self, keys: str) -> None:
        """Presses keys; \\x03 is Ctrl-C, \\x04 ends the input."""
        os.write(self._end, keys.encode())

    def interrupt(self) -> None:
        """Presses Ctrl-C again and again: input() misses one that comes just before it reads."""
        while self.process.poll() is None:
            self.type("\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)

    def end(self) -> int:
        """The exit code, once the program has ended."""
        self.read()
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)


_OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
terminal = os.open(os.ttyname(2), os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.close(terminal)
os.execv(sys.argv[1], sys.argv[1:])
"""
