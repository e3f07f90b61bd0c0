"""Writes the results into the documentation: `python -m benchmarks.report RESULTS.json`.

Tables go between the markers of docs/performance.md, plots and the results into docs/performance/.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests import servers

from . import tables

DOCS = servers.ROOT / "docs"

_PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "machine": tables.machine,
    "goals": tables.goals,
    "peers": tables.peers,
}


def _part(results: dict[str, Any], name: str) -> str:
    return _PARTS[name](results) if name in _PARTS else tables.group(results, name)


def fill(page: str, results: dict[str, Any]) -> str:
    """The page with every table renewed: what stands between two markers of a name."""

    def renew(found: re.Match[str]) -> str:
        start, name, end = found[1], found[2], found[3]
        return f"{start}\n{_part(results, name)}\n{end}"

    return re.sub(r"(<!-- table: ([a-z]+) -->)\n.*?(<!-- end -->)", renew, page, flags=re.DOTALL)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of performance.md")
    parser.add_argument("--plots", action=argparse.BooleanOptionalAction, default=True)
    chosen = parser.parse_args(words)
    results = json.loads(chosen.results.read_text("utf-8"))
    page = chosen.docs / "performance.md"
    page.write_text(fill(page.read_text("utf-8"), results), "utf-8")
    folder = chosen.docs / "performance"
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if chosen.plots:
        from .plots import draw  # matplotlib is installed for the report alone

        draw(results, folder)
    print(f"bench: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
