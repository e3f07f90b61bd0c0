"""Asking before something is destroyed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from cwist_jq.cli import exits
from cwist_jq.cli.failure import Failure

__all__ = ["confirm", "yes_option"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def yes_option(function: _Command) -> _Command:
    """Gives a command the flag --yes."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(function)


def confirm(question: Callable[[], str], *, yes: bool) -> None:
    """Asks, unless --yes was given. Without a terminal nobody can answer: then it refuses.

    The question is made only when it is asked: it may need to look at the queue.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(
            "nothing was changed: there is no terminal to ask on; pass --yes", exits.NOT_CONFIRMED
        )
    try:
        agreed = click.confirm(question(), err=True)
    except click.Abort as abort:
        if isinstance(abort.__cause__ or abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        agreed = False  # the end of input is no yes
    if not agreed:
        raise Failure("nothing was changed", exits.NOT_CONFIRMED)
