"""cwist-jq doctor: looks for what is wrong with a server and its queues."""

from __future__ import annotations

from collections.abc import Iterator

import click

import cwist_jq
from cwist_jq.cli import (
    address,
    checks_nats,
    checks_nats_queue,
    checks_redis,
    checks_redis_queue,
    exits,
)
from cwist_jq.cli.discover import nats_queues, redis_queues
from cwist_jq.cli.finding import Finding, fine, note, wrong
from cwist_jq.cli.probe import ProbeFailed, Refusal
from cwist_jq.cli.probe_nats import NatsProbe
from cwist_jq.cli.probe_redis import RedisProbe
from cwist_jq.cli.session import Session, command_options
from cwist_jq.cli.text import printable

__all__ = ["doctor"]

_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "wrong": "red"}
_HINTS = {
    "ConnectionFailed": "start the server, or name another one: --url or CWIST_JQ_URL",
    "Denied": "put the right user, password or certificate into the URL (docs/tls.md)",
    "ProtocolError": "name the right port, and rediss:// or tls:// for one that encrypts",
    "Unsupported": "turn JetStream on (nats-server -js), or upgrade the server",
}

#: A finding and the queue that it is about.
Told = tuple[str, Finding]


@click.command()
@click.argument("queue", nargs=-1)
@click.option("--strict", is_flag=True, help="Exit with 1 on a warning too.")
@command_options
def doctor(session: Session, queue: tuple[str, ...], strict: bool) -> None:  # noqa: FBT001 (click's)
    """Checks the server and each QUEUE, or all queues when none is named; changes nothing.

    Looks at version, persistence, eviction, JetStream, clock, rights, the settings of streams and
    consumers, what older clients left, and consumers that are gone. Each finding says what is wrong
    and what mends it. Exit code: 1 when something is wrong, else 0.
    """
    levels = []
    for name, finding in _findings(session, queue):
        levels.append(finding.level)
        _tell(session, name, finding)
    bad = levels.count("wrong")
    warned = levels.count("warning")
    session.out.line(f"{bad} wrong, {warned} {'warning' if warned == 1 else 'warnings'}")
    if bad or (strict and warned):
        click.get_current_context().exit(exits.FAILED)


def _findings(session: Session, queues: tuple[str, ...]) -> Iterator[Told]:
    try:
        with session.connect() as connection:
            for name in queues:
                connection.queue(name).close()  # a wrong name is told before anything else
    except cwist_jq.InvalidParam:
        raise
    except cwist_jq.Error as error:
        hint = _HINTS.get(type(error).__name__, "see the text")
        yield "", wrong("connection", str(error), hint)
        return
    place = address.parse(session.url)
    yield "", fine("connection", f"{place.label} answers")
    try:
        if place.engine == "redis":
            with RedisProbe(place, session.timeout) as redis:
                yield from _redis(redis, queues)
        else:
            with NatsProbe(place, session.timeout) as nats:
                yield from _nats(nats, queues)
    except (ProbeFailed, OSError) as error:
        yield "", wrong("connection", f"the checks ended early: {error}", "run doctor again")


def _redis(probe: RedisProbe, queues: tuple[str, ...]) -> Iterator[Told]:
    for finding in checks_redis.server(probe):
        yield "", finding
    try:
        names = queues or redis_queues(probe)
    except Refusal as refusal:
        yield "", _unlisted(refusal)
        return
    for name in names:
        for finding in checks_redis_queue.queue(probe, name):
            yield name, finding


def _nats(probe: NatsProbe, queues: tuple[str, ...]) -> Iterator[Told]:
    usable = True
    for finding in checks_nats.server(probe):
        usable = usable and not (finding.check == "jetstream" and finding.level == "wrong")
        yield "", finding
    if not usable:
        return
    try:
        names = queues or nats_queues(probe)
    except Refusal as refusal:
        yield "", _unlisted(refusal)
        return
    for name in names:
        for finding in checks_nats_queue.queue(probe, name):
            yield name, finding


def _unlisted(refusal: Refusal) -> Finding:
    return note("queues", f"cannot be listed: {refusal}", "name them: cwist-jq doctor QUEUE")


def _tell(session: Session, queue: str, finding: Finding) -> None:
    if session.out.as_json:
        session.out.record({"queue": queue or None, **finding._asdict()})
        return
    level = click.style(f"{finding.level:<8}", fg=_COLOURS[finding.level])
    about = f"{queue}: {finding.check}" if queue else finding.check
    session.out.line(f"{level} {printable(about)}: {printable(finding.text)}")
    if finding.mend is not None:
        session.out.line(f"{'':<8}   mend: {printable(finding.mend)}")
