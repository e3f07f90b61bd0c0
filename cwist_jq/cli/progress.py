"""Bars for long work, on a terminal only; they go to stderr, results go to stdout."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

__all__ = ["Advance", "bar", "watched"]

_Result = TypeVar("_Result")

#: Tells a bar how many more are done.
Advance = Callable[[int], None]

_LOOK = 0.25  # seconds between two looks at work that C does


@contextlib.contextmanager
def bar(title: str, total: int | None, *, quiet: bool) -> Iterator[Advance]:
    """Shows a bar for what is done of `total`, or a count when that is None."""
    if quiet or not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda count: progress.update(task, advance=count)


def watched(
    title: str, work: Callable[[], _Result], left: Callable[[], int], *, quiet: bool
) -> _Result:
    """Does work in C that tells nothing until it ends, with a bar by what is `left` to do.

    Without a terminal the work is simply done. With one, Ctrl-C leaves it: what was moved is moved.
    """
    if quiet or not sys.stderr.isatty():
        return work()
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)

    before = total = left()
    thread = threading.Thread(target=run, daemon=True)
    with bar(title, total, quiet=False) as advance:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
            now = min(left(), before)
            advance(before - now)
            before = now
    if errors:
        raise errors[0]
    return results[0]


def _nothing(_: int) -> None:
    """Where no bar is shown."""
