"""What one operation costs: instructions and system calls of the client, commands at the server.

Each count is the difference between a run of many jobs and a run of few, so that start and end drop
out. valgrind counts the instructions, strace the system calls, the server its commands (Redis) or
messages (NATS).
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import servers

from . import queues
from .rig import Broken, Plan, Program, Rig, Row, rig

FEW, MANY = 200, 1_200
OPERATIONS = ["enqueue", "enqueue-many", "drain-one", "drain"]


class Counter:
    """Counts something of one run. The words go before the program's own."""

    name = ""

    def words(self, path: Path) -> list[str]:
        """What the program is run by; it writes to the file."""
        return []

    def before(self, ground: Rig) -> int:
        """The count before a run, if it is the server's."""
        return 0

    def after(self, ground: Rig, path: Path) -> int:
        """The count after it."""
        raise NotImplementedError


def _number(path: Path, pattern: str) -> int:
    found = re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise Broken(f"no count in {path.read_text('utf-8')}")
    return int(found[1])


class Instructions(Counter):
    """Instructions of the client, by valgrind."""

    name = "instructions"

    def words(self, path: Path) -> list[str]:
        return [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            f"--log-file={path}",
        ]

    def after(self, ground: Rig, path: Path) -> int:
        return _number(path, r"Collected : (\d+)")


class SystemCalls(Counter):
    """System calls of all threads of the client, by strace."""

    name = "system calls"

    def words(self, path: Path) -> list[str]:
        return ["strace", "-f", "-c", "-U", "calls,name", "-o", str(path)]

    def after(self, ground: Rig, path: Path) -> int:
        return _number(path, r"^ *(\d+) total")


class ServerWork(Counter):
    """Commands that Redis ran, those inside of scripts too; messages into and out of NATS."""

    name = "server commands, messages"

    def before(self, ground: Rig) -> int:
        if ground.engine == "redis":
            with queues.redis_client(ground.server.url) as client:
                found: dict[str, Any] = client.info("commandstats")
                return sum(of["calls"] for of in found.values())
        with urllib.request.urlopen(f"{ground.facts['monitor']}/varz") as answer:
            varz = json.load(answer)
        return int(varz["in_msgs"]) + int(varz["out_msgs"])

    def after(self, ground: Rig, path: Path) -> int:
        return self.before(ground)


COUNTERS = [Instructions(), SystemCalls(), ServerWork()]


def _usable() -> list[Counter]:
    """The counters whose program is here; the others are named."""
    found = []
    for counter in COUNTERS:
        words = counter.words(Path())
        if words and shutil.which(words[0]) is None:
            print(f"bench: no {words[0]}: {counter.name} are not counted", file=sys.stderr)
        else:
            found.append(counter)
    return found


def _count(ground: Rig, counter: Counter, side: str, operation: str, jobs: int) -> int:
    """What one run costs, start and end included."""
    queue = ground.queue()
    if operation.startswith("drain"):
        ground.fill(queue, jobs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "count"
        before = counter.before(ground)
        program = Program([*counter.words(path), *ground.words(side, queue, operation, jobs)])
        program.go()
        program.finish()
        found = counter.after(ground, path) - before
    ground.clean()
    return found


def _row(plan: Plan, ground: Rig, counter: Counter, operation: str) -> Row:
    values = {}
    for side in plan.sides:
        few, many = (_count(ground, counter, side, operation, n) for n in (FEW, MANY))
        values[side] = [(many - few) / (MANY - FEW)]
    return Row("costs", ground.engine, operation, f"{counter.name} a job", values)


@contextmanager
def _monitored(engine: str) -> Iterator[Rig]:
    """A server that tells what it did."""
    if engine == "redis":
        with rig(engine) as ground:
            yield ground
        return
    address = f"127.0.0.1:{servers.free_port()}"
    with rig(engine, config=f'http: "{address}"') as ground:
        ground.facts["monitor"] = f"http://{address}"
        yield ground


def measure(plan: Plan, engine: str) -> list[Row]:
    """Each operation, counted in each way."""
    usable = _usable()
    with _monitored(engine) as ground:
        return [
            _row(plan, ground, counter, operation) for operation in OPERATIONS for counter in usable
        ]
