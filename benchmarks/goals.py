"""What is to be reached, and whether it was.

A goal is a ratio to the bare loop (the median of the rounds' own ratios, for the two of a round saw
the same machine), a ratio to another row or to the best peer, or a plain number.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .run_peers import OURS

Rows = list[dict[str, Any]]
Values = dict[str, list[float]]


@dataclass(frozen=True)
class Goal:
    """One cell of the table: `measured(rows, engine)` must be on the right side of the limits."""

    name: str
    measured: Callable[[Rows, str], float | None]
    #: For each engine.
    limits: dict[str, float]
    #: Whether less is better.
    at_most: bool = False
    unit: str = ""

    def reached(self, engine: str, value: float) -> bool:
        """Whether a value is good enough."""
        limit = self.limits[engine]
        return value <= limit if self.at_most else value >= limit


def find(rows: Rows, engine: str, group: str, name: str) -> dict[str, Any] | None:
    """The row of that name."""
    same = (r for r in rows if (r["engine"], r["group"], r["name"]) == (engine, group, name))
    return next(same, None)


def ratio(row: dict[str, Any] | None, side: str, base: str = "bare") -> float | None:
    """The median of the ratios of the rounds."""
    values: Values = row["values"] if row is not None else {}
    if not values.get(side) or not values.get(base):
        return None
    return statistics.median(a / b for a, b in zip(values[side], values[base], strict=True))


def middle(row: dict[str, Any] | None, side: str) -> float | None:
    """The median of a side."""
    values: Values = row["values"] if row is not None else {}
    return statistics.median(values[side]) if values.get(side) else None


def _pair(name: str, side: str, group: str = "pairs") -> Callable[[Rows, str], float | None]:
    return lambda rows, engine: ratio(find(rows, engine, group, name), side)


def _lowest(found: Iterable[float | None]) -> float | None:
    known = [value for value in found if value is not None]
    return min(known) if known else None


def _beside_crowds(side: str) -> Callable[[Rows, str], float | None]:
    """The worst of the kinds of crowd."""

    def share(rows: Rows, engine: str, kind: str) -> float | None:
        large = middle(find(rows, engine, "crowds", f"{kind}, 1000000"), side)
        small = middle(find(rows, engine, "crowds", f"{kind}, 1000"), side)
        return large / small if large is not None and small is not None else None

    kinds = ["waiting", "in flight", "delayed", "dead"]
    return lambda rows, engine: _lowest(share(rows, engine, kind) for kind in kinds)


def _to_peers(name: str, peers_row: str) -> Callable[[Rows, str], float | None]:
    """Our Python to the quickest of the peers."""

    def measured(rows: Rows, engine: str) -> float | None:
        ours = middle(find(rows, engine, "pairs", name), "python")
        row = find(rows, engine, "peers", peers_row)
        best = _best(row)
        return ours / best if ours is not None and best is not None else None

    return measured


def _best(row: dict[str, Any] | None) -> float | None:
    """The quickest of the peers."""
    values: Values = row["values"] if row is not None else {}
    found = [statistics.median(of) for name, of in values.items() if name not in OURS]
    return max(found) if found else None


def _worker_to_peers(kind: str) -> Callable[[Rows, str], float | None]:
    """The drain of our worker to that of the quickest of the peers."""

    def measured(rows: Rows, engine: str) -> float | None:
        row = find(rows, engine, "peers", "drain")
        ours, best = middle(row, f"cwist_jq-{kind}-{engine}"), _best(row)
        return ours / best if ours is not None and best is not None else None

    return measured


def _worker_to_claim(kind: str) -> Callable[[Rows, str], float | None]:
    """The latency of our idle worker to that of a loop of claims in the same run."""

    def measured(rows: Rows, engine: str) -> float | None:
        row = find(rows, engine, "peers", "p50")
        ours, plain = (middle(row, f"cwist_jq-{one}-{engine}") for one in (kind, "claim"))
        return ours / plain if ours is not None and plain is not None else None

    return measured


def _worker_memory(rows: Rows, engine: str) -> float | None:
    row = find(rows, engine, "peers", "memory")
    found = (middle(row, f"cwist_jq-{kind}-{engine}") for kind in ("sync", "async"))
    known = [value for value in found if value is not None]
    return max(known) if known else None


def _import_ms(rows: Rows, engine: str) -> float | None:
    row = find(rows, engine, "footprint", "start of the interpreter")
    bare, ours = middle(row, "bare"), middle(row, "python")
    return ours - bare if bare is not None and ours is not None else None


def _limits(redis: float, nats: float) -> dict[str, float]:
    return {"redis": redis, "nats": nats}


GOALS = [
    Goal("C: enqueue one at a time", _pair("enqueue", "c"), _limits(0.97, 0.95)),
    Goal("C: enqueue in bulk", _pair("enqueue-many", "c"), _limits(1.05, 0.90)),
    Goal("C: claim_many(100) and ack_many", _pair("drain", "c"), _limits(1.00, 1.10)),
    Goal(
        "C: claim and ack one at a time, pinned",
        _pair("drain-one, pinned", "c"),
        _limits(0.97, 0.97),
    ),
    Goal(
        "Python: enqueue one at a time, pinned",
        _pair("enqueue, pinned", "python"),
        _limits(0.88, 0.88),
    ),
    Goal("Python: enqueue_many with ids", _pair("enqueue-many", "python"), _limits(0.90, 0.80)),
    Goal(
        "Python: claim_many(100) and ack_many, payload read",
        _pair("drain", "python"),
        _limits(0.85, 0.80),
    ),
    Goal(
        "Python: claim and ack one at a time, pinned",
        _pair("drain-one, pinned", "python"),
        _limits(0.85, 0.85),
    ),
    Goal(
        "Python: bulk enqueue, to the best peer",
        _to_peers("enqueue-many", "enqueue-many"),
        _limits(20, 8),
    ),
    Goal("Python: drain, to the best peer", _to_peers("drain", "drain"), _limits(35, 9)),
    Goal(
        "Worker, sync handlers: drain, to the best peer", _worker_to_peers("sync"), _limits(12, 9)
    ),
    Goal(
        "Worker, async handlers: drain, to the best peer", _worker_to_peers("async"), _limits(8, 8)
    ),
    Goal(
        "Worker, sync handlers: idle latency to a claim's, p50",
        _worker_to_claim("sync"),
        _limits(2, 2),
        at_most=True,
    ),
    Goal(
        "Worker, async handlers: idle latency to a claim's, p50",
        _worker_to_claim("async"),
        _limits(2, 2),
        at_most=True,
    ),
    Goal(
        "Worker: memory after a drain",
        _worker_memory,
        _limits(30, 30),
        at_most=True,
        unit=" MiB",
    ),
    Goal("C: idle latency, p50", _pair("p50", "c", "latency"), _limits(1.2, 1.2), at_most=True),
    Goal("C: idle latency, p99", _pair("p99", "c", "latency"), _limits(1.3, 1.3), at_most=True),
    Goal(
        "Python: idle latency, p50",
        _pair("p50", "python", "latency"),
        _limits(1.2, 1.2),
        at_most=True,
    ),
    Goal(
        "Python: idle latency, p99",
        _pair("p99", "python", "latency"),
        _limits(1.3, 1.3),
        at_most=True,
    ),
    Goal("C: claim and ack beside 10^6 jobs, to 10^3", _beside_crowds("c"), _limits(0.8, 0.8)),
    Goal(
        "Python: claim and ack beside 10^6 jobs, to 10^3",
        _beside_crowds("python"),
        _limits(0.8, 0.8),
    ),
    Goal(
        "Python: memory of a worker after a drain",
        lambda rows, engine: middle(find(rows, engine, "footprint", "worker"), "python"),
        _limits(18, 20),
        at_most=True,
        unit=" MiB",
    ),
    Goal(
        "Python: import, above a bare interpreter",
        _import_ms,
        _limits(25, 25),
        at_most=True,
        unit=" ms",
    ),
]
