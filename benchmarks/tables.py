"""The tables of docs/performance.md, as Markdown."""

from __future__ import annotations

import statistics
from typing import Any

from .goals import GOALS, Goal, Rows, Values, ratio

ENGINES = {"redis": "Redis", "nats": "NATS"}
NAMES = {"bare": "bare C loop", "tuned": "bare, tuned", "c": "our C", "python": "our Python"}


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cell(values: list[float]) -> str:
    """Median, and min to max when there are several."""
    middle = _number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({_number(min(values))} to {_number(max(values))})"


def _table(head: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])


def machine(results: dict[str, Any]) -> str:
    """What it was measured on."""
    return _table(["what", "which"], [[name, text] for name, text in results["machine"].items()])


def _goal_cells(goal: Goal, rows: Rows, engine: str) -> list[str]:
    value = goal.measured(rows, engine)
    limit = f"{'<=' if goal.at_most else '>='} {goal.limits[engine]:g}{goal.unit}"
    if value is None:
        return [limit, "not measured"]
    word = "" if goal.reached(engine, value) else ", **short**"
    return [limit, f"{value:.3g}{goal.unit}{word}"]


def goals(results: dict[str, Any]) -> str:
    """What was to be reached, and what was measured."""
    head = ["row"]
    for name in ENGINES.values():
        head += [f"{name}, goal", f"{name}, measured"]
    lines = [
        [
            goal.name,
            *(cell for engine in ENGINES for cell in _goal_cells(goal, results["rows"], engine)),
        ]
        for goal in GOALS
    ]
    return _table(head, lines)


def _side_cells(row: dict[str, Any], sides: list[str]) -> list[str]:
    values: Values = row["values"]
    cells = [_cell(values[side]) if values.get(side) else "" for side in sides]
    for side in sides:
        share = ratio(row, side)
        if side != "bare":
            cells.append(f"{share:.2f}" if share is not None else "")
    return cells


def group(results: dict[str, Any], name: str) -> str:
    """All rows of a group: each side, and its ratio to the bare loop."""
    rows: Rows = [row for row in results["rows"] if row["group"] == name]
    found = {side for row in rows for side in row["values"]}
    sides = [side for side in NAMES if side in found]
    sides += sorted(found - set(NAMES))
    with_bare = [NAMES.get(side, side) for side in sides if side != "bare" and "bare" in found]
    head = ["engine", "row", "unit", *(NAMES.get(side, side) for side in sides)]
    head += [f"{side} / bare" for side in with_bare]
    lines = [
        [ENGINES[row["engine"]], row["name"], row["unit"], *_side_cells(row, sides)][: len(head)]
        for row in rows
    ]
    return _table(head, lines)


def peers(results: dict[str, Any]) -> str:
    """Our Python and the other Python queues: a line for each, a column for each row."""
    rows: Rows = [row for row in results["rows"] if row["group"] == "peers"]
    parts = []
    for engine, title in ENGINES.items():
        mine = [row for row in rows if row["engine"] == engine]
        names = sorted({name for row in mine for name in row["values"]})
        if not names:
            continue
        head = [f"on {title}", *(f"{row['name']}, {row['unit']}" for row in mine)]
        lines = [
            [name, *(_cell(row["values"][name]) if name in row["values"] else "" for row in mine)]
            for name in names
        ]
        parts.append(_table(head, lines))
    absent: dict[str, str] = results.get("peers_absent", {})
    parts += [f"Not measured: {name}: {why}" for name, why in absent.items()]
    return "\n\n".join(parts) if parts else "Not measured in this run (`make bench-peers`)."


def costs(results: dict[str, Any]) -> str:
    """What one operation costs: a line for each operation, a column for each count and side."""
    return group(results, "costs")
