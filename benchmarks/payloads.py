"""Batches of payloads of several sizes."""

from __future__ import annotations

from .pairs import rate
from .rig import Plan, Row, rig, rounds

#: Payload size: jobs of a round. A batch of 100 has 100 MB at most.
SIZES = {100: 20_000, 10_000: 10_000, 1_000_000: 200}


def _row(plan: Plan, engine: str, operation: str, size: int) -> Row:
    count = plan.count(SIZES[size])
    filled = operation == "drain"
    # A server for each row: with large payloads its files are large too.
    with rig(engine) as ground:
        values = rounds(
            plan.sides,
            plan.rounds,
            lambda side: rate(ground, side, operation, count, filled=filled, size=size),
        )
    facts = {"jobs": count, "size": size}
    return Row("payloads", engine, f"{operation}, {size} B", "jobs/s", values, facts)


def measure(plan: Plan, engine: str) -> list[Row]:
    """Bulk enqueue and drain for each size."""
    operations = ["enqueue-many", "drain"]
    return [_row(plan, engine, operation, size) for size in SIZES for operation in operations]
