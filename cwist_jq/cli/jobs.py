"""cwist-jq jobs peek: looks at ready jobs without claiming them."""

from __future__ import annotations

import click

from cwist_jq.cli import address, exits, peek_nats, peek_redis
from cwist_jq.cli.failure import Failure
from cwist_jq.cli.output import Column, payload_fields
from cwist_jq.cli.peeked import Peeked
from cwist_jq.cli.probe import ProbeFailed
from cwist_jq.cli.probe_nats import NatsProbe
from cwist_jq.cli.probe_redis import RedisProbe
from cwist_jq.cli.raw import write_raw
from cwist_jq.cli.session import Session, command_options
from cwist_jq.cli.text import of_bytes, printable, shortened

__all__ = ["jobs"]

_COLUMNS: tuple[Column, ...] = (
    ("id", False),
    ("type", False),
    ("attempts", True),
    ("size", True),
    ("payload", False),
)
_WIDTH = 60  # characters of a payload in the list


@click.group()
@command_options
def jobs(_: Session) -> None:
    """Looks at jobs."""


@jobs.command()
@click.argument("queue")
@click.option(
    "--most", type=click.IntRange(1, 1000), default=10, metavar="N", help="At most so many (10)."
)
@click.option(
    "--raw", is_flag=True, help="Write the payload of the first job alone, byte for byte."
)
@command_options
def peek(session: Session, queue: str, most: int, raw: bool) -> None:  # noqa: FBT001 (click's)
    """Shows the jobs of QUEUE that would be claimed next; they stay ready.

    Delayed jobs, and on NATS jobs that were delivered before, are not shown.
    """
    with session.connect() as connection, connection.queue(queue):
        pass  # a wrong URL or name, and a server that is away, are told in the library's words
    found = _look(session, queue, 1 if raw else most)
    if raw:
        if not found:
            raise Failure(f"{queue} has no ready job", exits.NOT_FOUND)
        write_raw(found[0].payload)
    elif session.out.as_json:
        for job in found:
            session.out.record(_record(job))
    else:
        session.out.table(_COLUMNS, [_row(job) for job in found])


def _look(session: Session, queue: str, most: int) -> list[Peeked]:
    place = address.parse(session.url)
    try:
        if place.engine == "redis":
            with RedisProbe(place, session.timeout) as redis:
                return peek_redis.ready(redis, queue, most)
        with NatsProbe(place, session.timeout) as nats:
            return peek_nats.ready(nats, queue, most)
    except ProbeFailed as error:
        raise Failure(f"the jobs of {queue} cannot be read: {error}") from None


def _row(job: Peeked) -> list[str]:
    return [
        printable(job.id),
        printable(job.type or "-"),
        str(job.attempts),
        str(len(job.payload)),
        shortened(of_bytes(job.payload[: _WIDTH * 4]), _WIDTH),
    ]


def _record(job: Peeked) -> dict[str, object]:
    return {
        "id": job.id,
        "type": job.type,
        "attempts": job.attempts,
        "dedupe_key": job.key,
        "headers": job.headers,
        "size": len(job.payload),
        **payload_fields(job.payload),
    }
