"""cwist-jq enqueue: stores jobs from an argument, a file or the lines of stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

import click

from cwist_jq import DuplicateId, Error, Item, Queue
from cwist_jq.cli.progress import bar
from cwist_jq.cli.session import Session, command_options

__all__ = ["enqueue"]

_PIECE = 1 << 16
_MOST = 1000  # lines of one batch


@click.command(
    epilog="Example: seq 1000 | cwist-jq enqueue emails --type number",
)
@click.argument("queue")
@click.argument("payload", required=False)
@click.option(
    "--file", "file", type=click.File("rb"), help="Take the payload from a file; - is stdin."
)
@click.option("--lines", is_flag=True, help="With --file: each line is a job.")
@click.option("--type", "kind", metavar="TEXT", help="The type of the jobs.")
@click.option(
    "--delay", type=float, default=0.0, metavar="SECONDS", help="Ready only after so long."
)
@click.option("--key", metavar="TEXT", help="A dedupe key: one live job with it at a time.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@command_options
def enqueue(  # noqa: PLR0913, PLR0917 (one for each option)
    session: Session,
    queue: str,
    payload: str | None,
    file: IO[bytes] | None,
    lines: bool,  # noqa: FBT001 (click's)
    kind: str | None,
    delay: float,
    key: str | None,
    headers: tuple[str, ...],
) -> None:
    """Stores a job and prints its id, or a job for each line of stdin and prints how many.

    PAYLOAD is stored as UTF-8. Without PAYLOAD and --file each line of stdin, without its line end,
    is a job; lines are sent as they come, up to 1000 at once.
    """
    options: dict[str, Any] = {"type": kind, "delay": delay, "headers": _headers(headers)}
    by_line = lines or (payload is None and file is None)
    _check(payload, file, by_line=by_line, lines=lines, key=key)
    with session.queue(queue) as opened:
        if by_line:
            _store_lines(session, opened, file or sys.stdin.buffer, options)
            return
        body = (
            file.read() if file is not None else (payload or "").encode("utf-8", "surrogateescape")
        )
        stored = opened.enqueue(body, dedupe_key=key, **options)
        _tell(session, stored)


def _check(
    payload: str | None, file: IO[bytes] | None, *, by_line: bool, lines: bool, key: str | None
) -> None:
    if payload is not None and file is not None:
        raise click.UsageError("pass PAYLOAD or --file, not both")
    if lines and file is None and payload is not None:
        raise click.UsageError("--lines reads --file or stdin, not PAYLOAD")
    if by_line and key is not None:
        raise click.UsageError("--key is for one job, not for lines")
    if by_line and file is None and sys.stdin.isatty():
        raise click.UsageError("pass PAYLOAD or --file, or pipe lines in")


def _headers(words: tuple[str, ...]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise click.UsageError(f"--header is {word}; expected NAME=VALUE")
        if name in found:
            raise click.UsageError(f"--header {name} is there twice")
        found[name] = value
    return found or None


def _tell(session: Session, stored: str) -> None:
    duplicate = isinstance(stored, DuplicateId)
    session.out.line(str(stored))
    if duplicate and not session.out.as_json:
        click.echo("cwist-jq: a job with this key is there already; nothing was stored", err=True)
    if session.out.as_json:
        session.out.record({"id": str(stored), "duplicate": duplicate})


def _store_lines(
    session: Session, queue: Queue, stream: IO[bytes], options: dict[str, Any]
) -> None:
    count = 0

    def tell(results: Iterable[object]) -> None:
        nonlocal count
        for stored in results:
            if isinstance(stored, str):
                count += 1
                if session.out.as_json:
                    session.out.record({"id": stored, "duplicate": False})

    try:
        with bar("jobs", None, quiet=session.out.as_json) as advance:
            for batch in _batches(stream):
                tell(queue.enqueue_many([Item(line, **options) for line in batch]))
                advance(len(batch))
    except Error as error:
        tell(error.results or ())
        raise
    finally:
        session.out.line(f"{count} {'job' if count == 1 else 'jobs'} stored")


def _batches(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Lines without their ends: all that are there already, as soon as they are."""
    read = getattr(stream, "read1", stream.read)
    begun: list[bytes] = []  # the pieces of a line that has not ended
    while piece := read(_PIECE):
        first, *more = piece.split(b"\n")
        begun.append(first)
        if not more:
            continue
        lines = [b"".join(begun), *more[:-1]]
        begun = [more[-1]]
        for start in range(0, len(lines), _MOST):
            yield lines[start : start + _MOST]
    last = b"".join(begun)
    if last:
        yield [last]
