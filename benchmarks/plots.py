"""The plots of docs/performance.md, as SVG."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from .goals import Rows, find
from .tables import ENGINES, NAMES

_COLOURS = {"bare": "#888888", "tuned": "#bbbbbb", "c": "#1f77b4", "python": "#ff7f0e"}


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def pairs(rows: Rows, path: Path) -> None:
    """Bars: each row of the pairs, as a share of the bare loop."""
    figure, axes = plt.subplots(1, len(ENGINES), figsize=(11, 4), sharey=True, layout="constrained")
    for axis, (engine, title) in zip(axes, ENGINES.items(), strict=True):
        mine = [r for r in rows if r["group"] == "pairs" and r["engine"] == engine]
        for place, side in enumerate(["c", "python"]):
            shares = [
                statistics.median(r["values"][side]) / statistics.median(r["values"]["bare"])
                if r["values"].get(side) and r["values"].get("bare")
                else 0
                for r in mine
            ]
            where = [number + 0.4 * place for number in range(len(mine))]
            axis.barh(where, shares, 0.4, label=NAMES[side], color=_COLOURS[side])
        axis.set_yticks([number + 0.2 for number in range(len(mine))], [r["name"] for r in mine])
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_title(f"{title}: rate, as a share of the bare C loop")
    axes[0].invert_yaxis()  # of both: they share it
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    _save(figure, path)


def _lines(rows: Rows, path: Path, group: str, fact: str, label: str, keep: dict[str, Any]) -> None:
    """Lines: a rate over a fact of the rows."""
    figure, axes = plt.subplots(1, len(ENGINES), figsize=(11, 4), layout="constrained")
    for axis, (engine, title) in zip(axes, ENGINES.items(), strict=True):
        mine = [
            r
            for r in rows
            if r["group"] == group
            and r["engine"] == engine
            and fact in r["facts"]
            and all(r["facts"].get(name) == value for name, value in keep.items())
        ]
        for side in ("bare", "c", "python"):
            points = [
                (r["facts"][fact], statistics.median(r["values"][side]))
                for r in mine
                if r["values"].get(side)
            ]
            if points:
                axis.plot(*zip(*points, strict=True), "o-", label=NAMES[side], color=_COLOURS[side])
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_xlabel(label)
        axis.set_ylabel("jobs/s")
        axis.set_title(", ".join([title, *map(str, keep.values())]))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    _save(figure, path)


def draw(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draws what there are rows for."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "cwist_jq"
    rows: Rows = results["rows"]
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    if find(rows, "redis", "pairs", "enqueue") or find(rows, "nats", "pairs", "enqueue"):
        drawn.append(folder / "pairs.svg")
        pairs(rows, drawn[-1])
    if any(row["group"] == "workers" for row in rows):
        drawn.append(folder / "workers.svg")
        _lines(rows, drawn[-1], "workers", "workers", "worker processes", {})
    for kind in sorted({row["facts"]["kind"] for row in rows if row["group"] == "crowds"}):
        drawn.append(folder / f"crowd-{kind.replace(' ', '-')}.svg")
        _lines(rows, drawn[-1], "crowds", "crowd", "jobs beside", {"kind": kind})
    return drawn
