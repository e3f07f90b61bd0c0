"""Small tools of the conformance tests."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import cwist_jq
from tests import servers
from tests.observers import DeadLetter, NatsObserver, Observer, RedisObserver
from tests.waiting import PATIENCE

__all__ = [
    "MakeQueue",
    "bury",
    "bytes_of",
    "claim",
    "crash_while_holding",
    "delays",
    "digest",
    "drain",
    "give_away",
    "is_at_least",
    "nats_of",
    "no_job",
    "only_letter",
    "redis_of",
    "worker_process",
]

MakeQueue = Callable[..., cwist_jq.Queue]


def claim(queue: cwist_jq.Queue, timeout: float = PATIENCE) -> cwist_jq.Job:
    """Claims a job that must come."""
    job = queue.claim(timeout)
    assert job is not None, f"no job came in {timeout} s"
    return job


def no_job(queue: cwist_jq.Queue, timeout: float = 0) -> None:
    """Claims, and no job may come."""
    job = queue.claim(timeout)
    assert job is None, f"{job} came"


def drain(queue: cwist_jq.Queue, count: int) -> list[cwist_jq.Job]:
    """Claims and acks exactly that many jobs, in order."""
    jobs = []
    for _ in range(count):
        job = claim(queue)
        job.ack()
        jobs.append(job)
    no_job(queue)
    return jobs


def give_away(
    queue: cwist_jq.Queue, other: cwist_jq.Queue | None = None
) -> tuple[cwist_jq.Job, cwist_jq.Job]:
    """Claims a job and lets its lease run out, so that it is delivered again: (old, new)."""
    old = claim(queue)
    new = claim(other or queue)
    assert (new.id, new.attempts) == (old.id, old.attempts + 1)
    return old, new


def only_letter(observer: Observer, name: str) -> DeadLetter:
    """The one dead letter of a queue."""
    letters = observer.dead(name)
    assert len(letters) == 1
    return letters[0]


def redis_of(observer: Observer) -> RedisObserver:
    """The observer as the one for Redis."""
    assert isinstance(observer, RedisObserver)
    return observer


def nats_of(observer: Observer) -> NatsObserver:
    """The observer as the one for NATS."""
    assert isinstance(observer, NatsObserver)
    return observer


# ---- what a server can do ----


def is_at_least(observer: Observer, major: int, minor: int) -> bool:
    """True for a NATS server of that version or newer, and for every other engine."""
    return not isinstance(observer, NatsObserver) or observer.is_at_least(major, minor)


def delays(queue: cwist_jq.Queue, observer: Observer) -> bool:
    """Whether the server takes delayed jobs; one that does not says so and stores nothing."""
    if is_at_least(observer, 2, 12):
        return True
    before = observer.ready_and_claimed(queue.name)
    with pytest.raises(cwist_jq.Unsupported, match=r"2\.12"):
        queue.enqueue(b"never", delay=1)
    assert observer.ready_and_claimed(queue.name) == before
    return False


# ---- dead letters ----


def bury(queue: cwist_jq.Queue, *items: cwist_jq.Item) -> list[str]:
    """Makes each item a dead letter, in this order; returns the ids."""
    ids = []
    for item in items:
        ids += queue.enqueue_many([item])
        job = claim(queue)
        assert job.id == ids[-1]
        job.nack(f"no {len(ids)}", dead=True)
    return ids


# ---- payloads ----


def bytes_of(size: int, salt: int = 0) -> bytes:
    """Bytes without a pattern that a cut or a shift would keep."""
    block = bytes((i * 7 + i // 256 + salt) % 256 for i in range(min(size, 65521)))
    return (block * (size // max(len(block), 1) + 1))[:size] if size else b""


def digest(payload: bytes) -> str:
    """A short name of a payload's bytes."""
    return hashlib.sha256(payload).hexdigest()


# ---- processes ----


@contextmanager
def worker_process(
    url: str, name: str, *, then: str = "hold", **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own: see worker.py for what it does and says."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.worker", url, name, then, repr(options)],
        cwd=servers.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def crash_while_holding(url: str, name: str, **options: Any) -> str:
    """A worker claims a job and is killed with it in its hands; returns the job's id."""
    with worker_process(url, name, **options) as process:
        assert process.stdout is not None
        job_id = process.stdout.readline().strip()
        assert job_id
        process.kill()
        assert process.wait(PATIENCE) == -9
    return job_id
