"""How long a job takes to an idle worker: from before the enqueue to after the claim.

One process waits, another one adds a job every 2 ms. Each side has both of its own.
"""

from __future__ import annotations

from .rig import Plan, Rig, Row, rig, rounds

#: A round; the first ones warm both processes up and do not count.
PAIRS = 300
WARM = 20


def percentile(values: list[float], share: float) -> float:
    """The value that this share of all is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def _round(ground: Rig, side: str, pairs: int) -> tuple[float, float]:
    """p50 and p99 of one round, in microseconds."""
    queue = ground.queue()
    count = pairs + WARM
    waiting = ground.start(side, queue, "wait", count)
    waiting.go()
    ground.run(side, queue, "add", count)
    samples = [ns / 1000 for ns in waiting.finish()["ns"][WARM:]]
    ground.clean()
    return percentile(samples, 0.5), percentile(samples, 0.99)


def measure(plan: Plan, engine: str) -> list[Row]:
    """p50 and p99, each the median of the rounds."""
    pairs = plan.count(PAIRS, 10)
    with rig(engine) as ground:
        found = rounds(plan.sides, plan.rounds, lambda side: _round(ground, side, pairs))
    rows = []
    for place, name in enumerate(["p50", "p99"]):
        values = {side: [both[place] for both in of] for side, of in found.items()}
        rows.append(Row("latency", engine, name, "us", values, {"pairs": pairs}))
    return rows
