"""cwist-jq stats: what queues hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import cwist_jq
from cwist_jq.cli import units
from cwist_jq.cli.discover import queue_names
from cwist_jq.cli.output import Column, plain_table, rich_table
from cwist_jq.cli.session import Session, command_options
from cwist_jq.cli.text import printable

if TYPE_CHECKING:
    from cwist_jq import Queue

__all__ = ["stats"]

_COLUMNS: tuple[Column, ...] = (
    ("queue", False),
    ("ready", True),
    ("claimed", True),
    ("delayed", True),
    ("dead", True),
    ("oldest ready", True),
    ("consumers", True),
    ("state", False),
)


@click.command()
@click.argument("queue", nargs=-1)
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    metavar="SECONDS",
    help="Between two looks of --watch (1).",
)
@command_options
def stats(session: Session, queue: tuple[str, ...], watch: bool, interval: float) -> None:  # noqa: FBT001 (click's)
    """Shows what each QUEUE holds, or all queues of the server when none is named.

    `claimed` counts jobs whose lease ended too until a claim brings them back; on NATS it counts
    jobs that wait after a nack as well. `oldest ready` is the age of the job that waits longest.
    """
    with session.connect() as connection:
        names = queue or tuple(queue_names(session.url, session.timeout))
        queues = [connection.queue(name) for name in names]
        if watch:
            _watch(session, queues, interval)
        elif session.out.as_json:
            for one in queues:
                session.out.record(_record(one))
        else:
            session.out.table(_COLUMNS, [_row(one) for one in queues])


def _watch(session: Session, queues: Sequence[Queue], interval: float) -> None:
    if session.out.as_json:
        while True:
            for one in queues:
                session.out.record({"time": time.time(), **_record(one)})
            sys.stdout.flush()  # whoever reads the pipe sees each look at once
            time.sleep(interval)
    if not session.out.terminal:
        while True:
            now = time.strftime("%H:%M:%SZ", time.gmtime())
            for line in plain_table(_COLUMNS, _rows(queues)):
                click.echo(f"{now}  {line}")
            sys.stdout.flush()  # whoever reads the pipe sees each look at once
            time.sleep(interval)
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(rich_table(_COLUMNS, _rows(queues)), refresh=True)
            time.sleep(interval)


def _rows(queues: Sequence[Queue]) -> list[list[str]]:
    """The rows of a look; a server that does not answer is told and looked for again."""
    rows = []
    for queue in queues:
        try:
            rows.append(_row(queue))
        except cwist_jq.ConnectionFailed:
            rows.append([printable(queue.name), *["-"] * 6, "no answer"])
    return rows


def _row(queue: Queue) -> list[str]:
    found = queue.stats()
    numbers = (found.ready, found.claimed, found.delayed, found.dead)
    return [
        printable(queue.name),
        *(str(number) for number in numbers),
        units.age(found.oldest_ready),
        str(found.consumers),
        "paused" if found.paused else "open",
    ]


def _record(queue: Queue) -> dict[str, Any]:
    found = queue.stats()
    return {
        "queue": queue.name,
        "ready": found.ready,
        "claimed": found.claimed,
        "delayed": found.delayed,
        "dead": found.dead,
        "oldest_ready": found.oldest_ready,
        "consumers": found.consumers,
        "paused": found.paused,
    }
