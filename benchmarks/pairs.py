"""The bare loop, our C and our Python in pairs: one connection, small payloads.

One at a time a round trip costs three times as much with client and server on two processors as on
one, and it varies: these rows are measured pinned to one processor, and free.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from .rig import DEPTH, SIZE, Plan, Rig, Row, pinned, rig, rounds


@dataclass(frozen=True)
class Pair:
    """A row: what is done, how often, where."""

    operation: str
    jobs: int
    pinned: bool = False
    #: The jobs are there before the clock starts.
    filled: bool = False
    #: On NATS a less plain bare loop is quicker; it runs too.
    tuned: bool = False

    @property
    def name(self) -> str:
        """As tables name it."""
        return f"{self.operation}, pinned" if self.pinned else self.operation


PAIRS = [
    Pair("enqueue", 6_000),
    Pair("enqueue", 12_000, pinned=True),
    Pair("enqueue-many", 80_000, tuned=True),
    Pair("drain", 40_000, filled=True, tuned=True),
    Pair("drain-next", 40_000, filled=True),
    Pair("drain-one", 3_000, filled=True),
    Pair("drain-one", 6_000, filled=True, pinned=True),
]


def rate(
    ground: Rig,
    side: str,
    operation: str,
    count: int,
    *,
    filled: bool,
    depth: int = DEPTH,
    size: int = SIZE,
) -> float:
    """Jobs a second of one run in a queue of its own."""
    queue = ground.queue()
    if filled:
        ground.fill(queue, count, size)
    seconds: float = ground.run(side, queue, operation, count, depth, size)["seconds"]
    ground.clean()
    return count / seconds


def _row(plan: Plan, ground: Rig, pair: Pair) -> Row:
    count = plan.count(pair.jobs)
    with_tuned = pair.tuned and ground.engine == "nats" and "bare" in plan.sides
    sides = [*plan.sides, "tuned"] if with_tuned else plan.sides

    def once(side: str) -> float:
        return rate(ground, side, pair.operation, count, filled=pair.filled)

    with pinned(ground.server) if pair.pinned else contextlib.nullcontext():
        values = rounds(sides, plan.rounds, once)
    facts = {"jobs": count, "depth": DEPTH, "size": SIZE, "pinned": pair.pinned}
    return Row("pairs", ground.engine, pair.name, "jobs/s", values, facts)


def measure(plan: Plan, engine: str) -> list[Row]:
    """All rows of an engine."""
    with rig(engine) as ground:
        return [_row(plan, ground, pair) for pair in PAIRS]
