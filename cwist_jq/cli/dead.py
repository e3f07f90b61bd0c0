"""cwist-jq dead: lists, shows, requeues and purges dead letters."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

import cwist_jq
from cwist_jq.cli import exits, units
from cwist_jq.cli.confirm import confirm, yes_option
from cwist_jq.cli.failure import Failure
from cwist_jq.cli.output import Column, payload_fields
from cwist_jq.cli.progress import watched
from cwist_jq.cli.raw import write_raw
from cwist_jq.cli.session import Session, command_options
from cwist_jq.cli.text import of_bytes, printable, shortened

if TYPE_CHECKING:
    from cwist_jq.dead import DeadLetter, DeadLetters

__all__ = ["dead"]

_COLUMNS: tuple[Column, ...] = (
    ("id", False),
    ("type", False),
    ("cause", False),
    ("attempts", True),
    ("died", False),
    ("size", True),
    ("reason", False),
)
_REASON = 60  # characters of it in a list
_PAGE = 100


@click.group()
@command_options
def dead(_: Session) -> None:
    """Looks after dead letters: jobs that failed too often."""


# ---- list and show ----


@dead.command("list")
@click.argument("queue")
@click.option(
    "--most", type=click.IntRange(1), default=_PAGE, metavar="N", help="At most so many (100)."
)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--oldest", is_flag=True, help="Oldest first. Default: newest first.")
@click.option("--type", "kind", metavar="TEXT", help='Only of this type; "" is none.')
@command_options
def list_letters(  # noqa: PLR0913, PLR0917 (one for each option)
    session: Session,
    queue: str,
    most: int,
    everything: bool,  # noqa: FBT001 (click's)
    oldest: bool,  # noqa: FBT001 (click's)
    kind: str | None,
) -> None:
    """Lists the dead letters of QUEUE."""
    with session.queue(queue) as opened:
        found = itertools.islice(
            _pages(opened.dead, oldest=oldest, kind=kind), None if everything else most
        )
        if session.out.as_json:
            for letter in found:
                session.out.record(_record(letter))
            return
        rows = [_row(letter) for letter in found]
        session.out.table(_COLUMNS, rows)
        count = opened.stats().dead if kind is None and not everything else len(rows)
    if count > len(rows):
        click.echo(f"cwist-jq: {len(rows)} of {count}; --all shows the rest", err=True)


def _pages(letters: DeadLetters, *, oldest: bool, kind: str | None) -> Iterator[DeadLetter]:
    after = None
    while True:
        page = letters.page(_PAGE, oldest_first=oldest, type=kind, after=after)
        yield from page
        after = page.mark
        if after is None:
            return


@dead.command()
@click.argument("queue")
@click.argument("id")
@click.option("--raw", is_flag=True, help="Write the payload alone, byte for byte.")
@command_options
def show(session: Session, queue: str, id: str, raw: bool) -> None:  # noqa: FBT001 (click's)
    """Shows the dead letter ID with its payload."""
    with session.queue(queue) as opened:
        letter = opened.dead.read(id)
    payload = letter.payload or b""
    if raw:
        write_raw(payload)
    elif session.out.as_json:
        session.out.record({**_record(letter), **payload_fields(payload)})
    else:
        for name, value in _details(letter):
            session.out.line(f"{name + ':':<10} {value}")
        session.out.line("")
        session.out.line(of_bytes(payload))


def _details(letter: DeadLetter) -> Iterator[tuple[str, str]]:
    yield "id", printable(letter.id)
    yield "type", printable(letter.type or "-")
    yield "cause", letter.cause
    yield "reason", printable(letter.reason or "-")
    yield "attempts", str(letter.attempts)
    yield "consumer", printable(letter.consumer or "-")
    yield "enqueued", units.moment(letter.first_time)
    yield "died", units.moment(letter.death_time)
    for name, value in letter.headers.items():
        yield "header", f"{printable(name)}: {printable(value)}"
    yield "size", units.size(letter.size)


def _row(letter: DeadLetter) -> list[str]:
    return [
        printable(letter.id),
        printable(letter.type or "-"),
        letter.cause,
        str(letter.attempts),
        units.moment(letter.death_time),
        units.size(letter.size),
        shortened(printable(letter.reason or ""), _REASON),
    ]


def _record(letter: DeadLetter) -> dict[str, Any]:
    first, death = letter.first_time, letter.death_time
    return {
        "id": letter.id,
        "type": letter.type,
        "cause": letter.cause,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "consumer": letter.consumer,
        "first_time": first.isoformat() if first else None,
        "death_time": death.isoformat() if death else None,
        "size": letter.size,
        "headers": dict(letter.headers),
    }


# ---- requeue and purge ----


@dead.command()
@click.argument("queue")
@click.argument("id", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that are there now.")
@click.option("--type", "kind", metavar="TEXT", help='With --all: only of this type; "" is none.')
@command_options
def requeue(
    session: Session,
    queue: str,
    id: tuple[str, ...],
    everything: bool,  # noqa: FBT001 (click's)
    kind: str | None,
) -> None:
    """Moves dead letters back into QUEUE; their attempts start again.

    Example: cwist-jq dead requeue emails --all --type welcome
    """
    _check(id, everything=everything, narrowed=kind is not None)
    with session.queue(queue) as opened:
        letters = opened.dead
        if everything:
            count = watched(
                "requeue",
                lambda: letters.requeue_all(kind),
                lambda: opened.stats().dead,
                quiet=session.out.as_json,
            )
            _tell(session, queue, "requeued", count)
        else:
            _each(session, queue, "requeued", id, letters.requeue)


@dead.command("purge")
@click.argument("queue")
@click.argument("id", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that are there now.")
@click.option("--type", "kind", metavar="TEXT", help='With --all: only of this type; "" is none.')
@click.option(
    "--older-than",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="With --all: only those that died so long ago.",
)
@yes_option
@command_options
def purge_letters(  # noqa: PLR0913, PLR0917 (one for each option)
    session: Session,
    queue: str,
    id: tuple[str, ...],
    everything: bool,  # noqa: FBT001 (click's)
    kind: str | None,
    older_than: float,
    yes: bool,  # noqa: FBT001 (click's)
) -> None:
    """Deletes dead letters of QUEUE for good."""
    _check(id, everything=everything, narrowed=kind is not None or older_than > 0)
    with session.queue(queue) as opened:
        letters = opened.dead

        def question() -> str:
            if not everything:
                return f"Delete {len(id)} dead letters of {queue} for good?"
            return _question(queue, opened.stats().dead, kind, older_than)

        confirm(question, yes=yes)
        if everything:
            count = watched(
                "purge",
                lambda: letters.purge_all(kind, older_than),
                lambda: opened.stats().dead,
                quiet=session.out.as_json,
            )
            _tell(session, queue, "purged", count)
        else:
            _each(session, queue, "purged", id, letters.purge)


def _question(queue: str, count: int, kind: str | None, older_than: float) -> str:
    which = f" of type {printable(kind)!r}" if kind is not None else ""
    age = f" that died {units.age(older_than)} ago or earlier" if older_than > 0 else ""
    some = f"those of the {count}" if which or age else f"all {count}"
    return f"Delete {some} dead letters of {queue}{which}{age} for good?"


def _check(id: tuple[str, ...], *, everything: bool, narrowed: bool) -> None:
    if bool(id) == everything:
        raise click.UsageError("pass ids, or --all")
    if narrowed and not everything:
        raise click.UsageError("--type and --older-than need --all")


def _each(
    session: Session, queue: str, done: str, ids: Iterable[str], one: Callable[[str], object]
) -> None:
    """Does it to one after the other; those that are not there do not stop it."""
    count = 0
    missing = []
    for name in ids:
        try:
            one(name)
            count += 1
        except cwist_jq.NotFound:
            missing.append(name)
    _tell(session, queue, done, count)
    sys.stdout.flush()
    if missing:
        raise Failure(f"no such dead letter: {', '.join(missing)}", exits.NOT_FOUND)


def _tell(session: Session, queue: str, done: str, count: int) -> None:
    if session.out.as_json:
        session.out.record({"queue": queue, done: count})
    session.out.line(f"{count} {'dead letter' if count == 1 else 'dead letters'} {done}")
