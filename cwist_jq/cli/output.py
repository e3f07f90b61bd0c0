"""What commands write to stdout: lines, JSON objects and tables.

Tables are drawn by rich on a terminal. Elsewhere they are plain columns and nothing is cut, so that
other programs can read them. Whoever fills a table or a line escapes foreign text (text.py) before.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Column", "Output", "payload_fields", "plain_table", "rich_table"]

Column = tuple[str, bool]  # its title, and whether it holds numbers


class Output:
    """Writes for people, or JSON for programs."""

    def __init__(self) -> None:
        """Writes for people until as_json is set."""
        self.as_json = False

    @property
    def terminal(self) -> bool:
        """Whether stdout is a terminal."""
        return sys.stdout.isatty()

    def line(self, text: str) -> None:
        """Writes a line for people; nothing with --json."""
        if not self.as_json:
            click.echo(text)

    def record(self, fields: Mapping[str, Any]) -> None:
        """Writes one JSON object on a line of its own. It is pure ASCII."""
        click.echo(json.dumps(fields).replace("\x7f", "\\u007f"))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Writes a table for people."""
        if not self.terminal:
            for line in plain_table(columns, rows):
                click.echo(line)
            return
        from rich.console import Console

        Console(highlight=False).print(rich_table(columns, rows))


def plain_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table in plain columns, with two spaces or more between them."""
    lines = [[title for title, _ in columns], *(list(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, (_, number) in zip(line, widths, columns)
        ).rstrip()
        for line in lines
    ]


def rich_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Table:
    """The table as rich draws it. No cell is read as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for title, number in columns:
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def payload_fields(payload: bytes) -> dict[str, Any]:
    """A payload in JSON: "payload" when it is UTF-8, else "payload_base64"."""
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode()}
