"""Memory of a worker after a drain and of the server, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
import time

from tests import servers

from .rig import Plan, Rig, Row, rig, rounds

JOBS = 100_000
STARTS = 8


def _worker_mib(ground: Rig, count: int) -> float:
    queue = ground.queue()
    ground.fill(queue, count)
    found: int = ground.run("python", queue, "drain", count)["resident_kib"]
    ground.clean()
    return found / 1024


def _server_mib(ground: Rig, count: int) -> tuple[float, float]:
    """Before and with jobs that wait."""
    before = ground.resident_kib()
    ground.fill(ground.queue(), count)
    return before / 1024, ground.resident_kib() / 1024


def _start_ms(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=servers.ROOT, check=True)
    return (time.perf_counter() - start) * 1000


def _import_row(plan: Plan, engine: str) -> Row:
    """The package loads both engines, so the number is the same for both, but for noise."""
    statements = {"bare": "pass", "python": "import cwist_jq"}
    values = rounds(
        list(statements),
        plan.rounds * STARTS,
        lambda side: _start_ms(statements[side]),
    )
    return Row("footprint", engine, "start of the interpreter", "ms", values)


def measure(plan: Plan, engine: str) -> list[Row]:
    """The rows of an engine."""
    jobs = plan.count(JOBS)
    facts = {"jobs": jobs}
    with rig(engine) as ground:
        before, filled = _server_mib(ground, jobs)
    rows = [
        Row("footprint", engine, "server, empty", "MiB", {"server": [before]}),
        Row(
            "footprint", engine, f"server, {jobs} jobs waiting", "MiB", {"server": [filled]}, facts
        ),
    ]
    if "python" in plan.sides:
        with rig(engine) as ground:
            workers = rounds(["python"], plan.rounds, lambda _: _worker_mib(ground, jobs))
        rows.append(Row("footprint", engine, "worker", "MiB", workers, facts))
        rows.append(_import_row(plan, engine))
    return rows
