"""cwist-jq bench: how fast this server takes and gives jobs."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

import click

from cwist_jq.cli import address
from cwist_jq.cli.failure import Failure
from cwist_jq.cli.output import Column
from cwist_jq.cli.probe import ProbeFailed
from cwist_jq.cli.probe_nats import NatsProbe
from cwist_jq.cli.probe_redis import RedisProbe
from cwist_jq.cli.progress import Advance, bar
from cwist_jq.cli.session import Session, command_options

if TYPE_CHECKING:
    from cwist_jq import Queue

__all__ = ["bench"]

_COLUMNS: tuple[Column, ...] = (
    ("step", False),
    ("jobs", True),
    ("jobs/s", True),
    ("p50 ms", True),
    ("p99 ms", True),
)
_WAIT = 10.0  # seconds for a job that must be there


@click.command()
@click.option(
    "--jobs", type=click.IntRange(1, 10_000_000), default=10_000, metavar="N", help="(10000)"
)
@click.option(
    "--batch", type=click.IntRange(1, 1000), default=100, metavar="N", help="Jobs a call (100)."
)
@click.option(
    "--size", type=click.IntRange(0, 1 << 20), default=100, metavar="BYTES", help="Of a job (100)."
)
@command_options
def bench(session: Session, jobs: int, batch: int, size: int) -> None:
    """Measures on a queue of its own, which is removed afterwards.

    `single` steps do one job in a call, a tenth of the number; the others --batch jobs. p50 and p99
    are the times of one call.
    """
    name = f"cwist-jq-bench-{secrets.token_hex(6)}"
    single = max(1, jobs // 10)
    payload = b"x" * size
    try:
        with (
            session.queue(name) as queue,
            bar("bench", 2 * (single + jobs), quiet=session.out.as_json) as advance,
        ):
            results = [
                _measure("enqueue, single", single, 1, lambda _: queue.enqueue(payload), advance),
                _measure("claim and ack, single", single, 1, lambda _: _work(queue), advance),
                _measure(
                    "enqueue", jobs, batch, lambda n: queue.enqueue_many([payload] * n), advance
                ),
                _measure("claim and ack", jobs, batch, lambda n: _drain(queue, n), advance),
            ]
    finally:
        _remove(session, name)
    if session.out.as_json:
        for result in results:
            session.out.record(result)
        return
    session.out.table(_COLUMNS, [_row(result) for result in results])


def _measure(step: str, jobs: int, batch: int, call: Any, advance: Advance) -> dict[str, Any]:
    """Runs calls until so many jobs went through; call takes a number of jobs."""
    times = []
    begin = time.perf_counter()
    for done in range(0, jobs, batch):
        now = min(batch, jobs - done)
        before = time.perf_counter()
        call(now)
        times.append(time.perf_counter() - before)
        advance(now)
    took = time.perf_counter() - begin
    times.sort()
    return {
        "step": step,
        "jobs": jobs,
        "batch": batch,
        "per_second": round(jobs / took, 1),
        "p50_ms": round(1000 * times[len(times) // 2], 3),
        "p99_ms": round(1000 * times[len(times) * 99 // 100], 3),
    }


def _work(queue: Queue) -> None:
    job = queue.claim(_WAIT)
    if job is None:
        raise Failure(f"a job of the bench did not come in {_WAIT:g} s")
    job.ack()


def _drain(queue: Queue, count: int) -> None:
    while count > 0:
        jobs = queue.claim_many(count, _WAIT)
        if not jobs:
            raise Failure(f"a job of the bench did not come in {_WAIT:g} s")
        queue.ack_many(jobs)
        count -= len(jobs)


def _row(result: dict[str, Any]) -> list[str]:
    return [
        result["step"],
        str(result["jobs"]),
        f"{result['per_second']:.0f}",
        f"{result['p50_ms']:.2f}",
        f"{result['p99_ms']:.2f}",
    ]


def _remove(session: Session, name: str) -> None:
    """Takes the queue of the bench off the server."""
    place = address.parse(session.url)
    try:
        if place.engine == "redis":
            with RedisProbe(place, session.timeout) as redis:
                prefix = redis.prefix(name)
                redis.call("DEL", *(prefix + suffix for suffix in ("s", "conf", "delay", "wait")))
        else:
            with NatsProbe(place, session.timeout) as nats:
                nats.api(f"STREAM.DELETE.{name}")
    except ProbeFailed as error:
        click.echo(f"cwist-jq: the queue {name} could not be removed: {error}", err=True)
