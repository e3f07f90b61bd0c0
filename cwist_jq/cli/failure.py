"""How a command fails: one line on stderr, and an exit code."""

from __future__ import annotations

import json
import sys
from typing import IO, Any

import click

from cwist_jq.cli import exits
from cwist_jq.cli.text import printable

__all__ = ["Failure", "report"]


class Failure(click.ClickException):
    """A command cannot do what it was asked for."""

    def __init__(self, message: str, code: int = exits.FAILED) -> None:
        """Takes the text and one of the codes in exits.py."""
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click's own classes do so too

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes the line for people."""
        click.echo(f"cwist-jq: {printable(self.message)}", file=file or sys.stderr)


def report(error: click.ClickException, *, as_json: bool) -> None:
    """Writes an error to stderr, for people or as a JSON object."""
    if as_json:
        found = {"error": error.format_message(), "exit_code": error.exit_code}
        click.echo(json.dumps(found), err=True)
    elif isinstance(error, click.UsageError):
        where = f" {error.ctx.command_path} --help" if error.ctx is not None else " cwist-jq --help"
        click.echo(f"cwist-jq: {printable(error.format_message())} (see{where})", err=True)
    else:
        click.echo(f"cwist-jq: {printable(error.format_message())}", err=True)
