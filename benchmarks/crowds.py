"""What a claim and an ack cost while a crowd waits, is in flight, delayed or dead."""

from __future__ import annotations

from . import crowd
from .rig import Plan, Rig, Row, pinned, rig, rounds

JOBS = 2_000
SMALL, LARGE = 1_000, 1_000_000
BETWEEN = [10_000, 100_000]


def _once(ground: Rig, side: str, queue: str, count: int) -> float:
    """Jobs a second; the crowd is as large afterwards as before."""
    ground.fill(queue, count)
    seconds: float = ground.run(side, queue, "drain-one", count)["seconds"]
    return count / seconds


def _row(plan: Plan, engine: str, kind: str, size: int) -> Row:
    jobs = plan.count(JOBS, 10)
    with rig(engine) as ground:
        queue = ground.queue()
        crowd.make(ground, queue, kind, plan.count(size, 10))
        with pinned(ground.server):
            values = rounds(plan.sides, plan.rounds, lambda side: _once(ground, side, queue, jobs))
        facts = {"jobs": jobs, "kind": kind, "crowd": size, "server_kib": ground.resident_kib()}
    return Row("crowds", engine, f"{kind}, {size}", "jobs/s", values, facts)


def measure(plan: Plan, engine: str) -> list[Row]:
    """Each kind with a small and a large crowd; with --full also between."""
    sizes = [SMALL, *(BETWEEN if plan.full else []), LARGE]
    return [_row(plan, engine, kind, size) for kind in crowd.KINDS for size in sizes]
