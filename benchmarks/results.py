"""The file of results: JSON, to which each group of rows is added when it was measured."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from . import machine
from .rig import Row


def merge(path: Path, group: str, rows: list[Row], seconds: float, **others: Any) -> None:
    """Replaces the rows of a group; those of other groups stay."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    kept = [row for row in found.get("rows", []) if row["group"] != group]
    found.update(others)
    found["machine"] = machine.describe()
    found["rows"] = kept + [dataclasses.asdict(row) for row in rows]
    found.setdefault("seconds", {})[group] = round(seconds, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
