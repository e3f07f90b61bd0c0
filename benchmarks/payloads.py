"""Batches of payloads of several sizes."""

from __future__ import annotations

from .pairs import rate
from .rig import Plan, Row, rig, rounds

#: Payload size: jobs of a round, and how many in a batch. A NATS server cuts off a client that has
#: 64 MB to read.
SIZES = {100: (10_000, 100), 10_000: (3_000, 100), 1_000_000: (60, 10)}


def _row(plan: Plan, engine: str, operation: str, size: int) -> Row:
    jobs, depth = SIZES[size]
    count = plan.count(jobs, depth)
    filled = operation == "drain"
    # A server for each row: with large payloads its files are large too.
    with rig(engine) as ground:
        values = rounds(
            plan.sides,
            plan.rounds,
            lambda side: rate(
                ground, side, operation, count, filled=filled, depth=depth, size=size
            ),
        )
    facts = {"jobs": count, "depth": depth, "size": size}
    return Row("payloads", engine, f"{operation}, {size} B", "jobs/s", values, facts)


def measure(plan: Plan, engine: str) -> list[Row]:
    """Bulk enqueue and drain for each size."""
    operations = ["enqueue-many", "drain"]
    return [_row(plan, engine, operation, size) for size in SIZES for operation in operations]
