"""The ground that benchmarks stand on: private servers, pinning, programs, rounds.

A program is one side of a pair: the bare loop, our C library, our Python. All take the same words,

    PROGRAM URL QUEUE OPERATION COUNT DEPTH SIZE

and print one line of JSON. They are started anew for each round, and only the loop is timed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests import servers

from . import queues

PROGRAMS = servers.ROOT / "build" / "bench"
SIDES = ["bare", "c", "python"]
DEPTH = 100
SIZE = 100

_PATIENCE = 600.0
_names = (f"bench{number}" for number in itertools.count())


class Broken(Exception):
    """A program failed: its numbers mean nothing."""


@dataclass
class Row:
    """What one row of a table measured: values of each side, one for each round."""

    group: str
    engine: str
    name: str
    unit: str
    values: dict[str, list[float]]
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Plan:
    """What the command line asks for."""

    engines: list[str]
    sides: list[str]
    rounds: int = 5
    #: Counts of jobs are multiplied by this; tests make it tiny.
    scale: float = 1.0
    #: Also what takes longer than the 15 minutes of `make bench`.
    full: bool = False

    def count(self, jobs: int, step: int = DEPTH) -> int:
        """A scaled number of jobs, a multiple of a step."""
        return max(1, round(jobs * self.scale / step)) * step


def command(side: str, engine: str) -> list[str]:
    """The program of a side, without its words."""
    if side == "python":
        return [sys.executable, "-m", "benchmarks.ours"]
    return [str(PROGRAMS / ("ours" if side == "c" else f"bare_{engine}"))]


class Program:
    """A running program: connected and waiting for its start."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words,
            cwd=servers.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self.finish()

    def go(self) -> None:
        """Lets it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def finish(self) -> dict[str, Any]:
        """Waits for its end; the JSON of its last line, with the seconds that it took."""
        with self._process as process:
            try:
                out, err = process.communicate(timeout=_PATIENCE)
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0 or not out:
            raise Broken(f"{process.args!r} ended with {process.returncode}: {err}")
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        if "start" in found:
            found["seconds"] = (found["end"] - found["start"]) / 1e9
        return found


@dataclass
class Rig:
    """A private server and what runs beside it."""

    engine: str
    server: servers.Server
    facts: dict[str, str] = field(default_factory=dict)

    def queue(self) -> str:
        """Makes an empty queue under a new name."""
        name = next(_names)
        queues.make(self.engine, self.server.url, name)
        return name

    def words(
        self,
        side: str,
        queue: str,
        operation: str,
        count: int,
        depth: int = DEPTH,
        size: int = SIZE,
    ) -> list[str]:
        """The command line of a program."""
        name = f"{operation}-tuned" if side == "tuned" else operation
        numbers = [str(count), str(depth), str(size)]
        return [*command(side, self.engine), self.server.url, queue, name, *numbers]

    def start(
        self,
        side: str,
        queue: str,
        operation: str,
        count: int,
        depth: int = DEPTH,
        size: int = SIZE,
    ) -> Program:
        """Starts a program; returns when it is connected."""
        return Program(self.words(side, queue, operation, count, depth, size))

    def run(
        self,
        side: str,
        queue: str,
        operation: str,
        count: int,
        depth: int = DEPTH,
        size: int = SIZE,
    ) -> dict[str, Any]:
        """Runs a program to its end and returns what it printed."""
        program = self.start(side, queue, operation, count, depth, size)
        program.go()
        return program.finish()

    def fill(self, queue: str, count: int, size: int = SIZE) -> None:
        """Puts jobs into a queue; not measured."""
        depth = max(1, min(1000, 4_000_000 // size))
        self.run("bare", queue, "enqueue-many", count, depth, size)

    def resident_kib(self) -> int:
        """The memory of the server."""
        status = Path(f"/proc/{self.server.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)

    def clean(self) -> None:
        """Removes all queues."""
        queues.drop_all(self.engine, self.server.url)


def kind(engine: str) -> str:
    """The server that is measured: what people run, if it is here, else the pinned one."""
    wanted = "distribution" if engine == "redis" else servers.pinned(engine)
    return wanted if wanted in servers.available(engine) else servers.pinned(engine)


@contextlib.contextmanager
def rig(engine: str, **options: Any) -> Iterator[Rig]:
    """A private server with the durability that benchmarks have: AOF everysec; file storage."""
    if engine == "redis":
        # No rewrite of the log in the middle of a round.
        options = {"appendonly": "everysec", "config": {"auto-aof-rewrite-percentage": 0}}
    server = servers.start_server(engine, kind(engine), **options)
    try:
        yield Rig(engine, server)
    finally:
        server.close()


@contextlib.contextmanager
def pinned(server: servers.Server) -> Iterator[None]:
    """Keeps the server, and what is started meanwhile, on one processor."""
    before = os.sched_getaffinity(0)
    one = {min(before)}
    _pin(server.pid, one)
    os.sched_setaffinity(0, one)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        _pin(server.pid, before)


def _pin(pid: int, processors: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(int(thread.name), processors)


_Result = TypeVar("_Result")


def rounds(
    sides: Sequence[str], number: int, once: Callable[[str], _Result]
) -> dict[str, list[_Result]]:
    """Measures the sides in turns, so that what moves the machine moves all of them.

    Each round begins with another side.
    """
    values: dict[str, list[_Result]] = {side: [] for side in sides}
    for turn in range(number):
        for place in range(len(sides)):
            side = sides[(turn + place) % len(sides)]
            values[side].append(once(side))
    return values
