"""Measures: `python -m benchmarks.run --out build/bench/results.json`.

Everything runs on private servers. The programs must be built before: `make bench` does all of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests import servers

from . import costs, crowds, footprint, latency, pairs, payloads, results, workers
from .rig import SIDES, Broken, Plan, Row

#: What measures the rows of an engine.
GROUPS: dict[str, Callable[[Plan, str], list[Row]]] = {
    "pairs": pairs.measure,
    "latency": latency.measure,
    "payloads": payloads.measure,
    "workers": workers.measure,
    "crowds": crowds.measure,
    "footprint": footprint.measure,
    "costs": costs.measure,
}

#: Not timed, and slow: `make bench-profile`.
APART = {"costs"}


def _choice(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        words = text.split(",")
        unknown = set(words) - set(allowed)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not of {', '.join(allowed)}")
        return words

    return parse


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    engines = list(servers.KINDS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--groups",
        type=_choice(list(GROUPS)),
        default=[group for group in GROUPS if group not in APART],
    )
    parser.add_argument("--engines", type=_choice(engines), default=engines)
    parser.add_argument("--sides", type=_choice(SIDES), default=SIDES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the counts of jobs")
    parser.add_argument("--full", action="store_true", help="also what takes long")
    parser.add_argument("--out", type=Path, required=True, help="results are added to it")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    chosen = _arguments(words)
    # An installed package has its bytecode in files; so the first start of ours writes them too.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    plan = Plan(chosen.engines, chosen.sides, chosen.rounds, chosen.scale, chosen.full)
    try:
        for group in chosen.groups:
            start = time.monotonic()
            rows = [row for engine in plan.engines for row in GROUPS[group](plan, engine)]
            seconds = time.monotonic() - start
            results.merge(chosen.out, group, rows, seconds)
            print(f"bench: {group}: {len(rows)} rows in {seconds:.0f} s", flush=True)
    except (Broken, servers.Unavailable) as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
