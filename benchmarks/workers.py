"""Many workers on one queue, and one worker on a very long one.

Workers are processes. They connect first and begin together; the time is that from the first one's
start to the last one's end.
"""

from __future__ import annotations

from .rig import Plan, Rig, Row, rig, rounds

WORKERS = [1, 8, 64]
ALL_WORKERS = [1, 2, 4, 8, 16, 32, 64]
JOBS = 5_120
MILLION = 1_000_000


def _together(ground: Rig, side: str, workers: int, count: int) -> float:
    """Jobs a second of workers that claim and ack one at a time, each its share."""
    queue = ground.queue()
    share = max(1, count // workers)
    ground.fill(queue, share * workers)
    programs = [ground.start(side, queue, "drain-one", share) for _ in range(workers)]
    for program in programs:
        program.go()
    found = [program.finish() for program in programs]
    ground.clean()
    span: int = max(of["end"] for of in found) - min(of["start"] for of in found)
    return share * workers / (span / 1e9)


def _long_drain(ground: Rig, side: str, count: int) -> float:
    queue = ground.queue()
    ground.fill(queue, count)
    seconds: float = ground.run(side, queue, "drain", count)["seconds"]
    ground.clean()
    return count / seconds


def _crew(plan: Plan, engine: str, workers: int) -> Row:
    count = plan.count(JOBS, 64)
    with rig(engine) as ground:
        values = rounds(
            plan.sides, plan.rounds, lambda side: _together(ground, side, workers, count)
        )
    facts = {"jobs": count, "workers": workers}
    return Row("workers", engine, f"drain-one, {workers} workers", "jobs/s", values, facts)


def _million(plan: Plan, engine: str) -> Row:
    count = plan.count(MILLION)
    turns = plan.rounds if plan.full else 1
    sides = plan.sides if plan.full else [side for side in plan.sides if side != "c"]
    with rig(engine) as ground:
        values = rounds(sides, turns, lambda side: _long_drain(ground, side, count))
    return Row("workers", engine, "drain of a million", "jobs/s", values, {"jobs": count})


def measure(plan: Plan, engine: str) -> list[Row]:
    """A row for each number of workers, and one for the long queue (one round, but with --full)."""
    numbers = ALL_WORKERS if plan.full else WORKERS
    crews = [_crew(plan, engine, workers) for workers in numbers]
    return [*crews, _million(plan, engine)]
