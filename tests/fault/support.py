"""What the fault tests share: waiting for conditions, measuring, threads and child processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Self

import cwist_jq
from tests import servers, watchdog
from tests.memory_observer import MemoryObserver
from tests.observers import NatsObserver, Observer, RedisObserver
from tests.waiting import Background, eventually

#: What a call may take beyond its deadline.
SLACK = 0.5

#: What a job's keys may be when only dead letters are left.
_KEPT = ("key dead", "key deadbody")


@dataclass
class Span:
    """How long a block took, once it is over."""

    seconds: float = 0.0


@contextlib.contextmanager
def took(least: float, most: float) -> Iterator[Span]:
    """Checks how long the block takes, whether it raises or not."""
    span = Span()
    start = time.monotonic()
    try:
        yield span
    finally:
        span.seconds = time.monotonic() - start
    assert least <= span.seconds <= most, f"took {span.seconds:.3f} s, allowed {least} to {most}"


@contextlib.contextmanager
def fails_within(kind: Any, most: float, *, least: float = 0.0) -> Iterator[Any]:
    """Like pytest.raises, and the time must fit; yields a holder whose `value` is the error."""
    import pytest

    with took(least, most + SLACK), pytest.raises(kind) as caught:
        yield caught


def blocked_claims(observer: Observer, queue: str) -> int:
    """How many claims wait on the server now; on Redis those of all queues.

    In memory:// it is the workers that wait or hold jobs.
    """
    if isinstance(observer, RedisObserver):
        return int(observer.client.info("clients")["blocked_clients"])
    if isinstance(observer, MemoryObserver):
        return observer.workers(queue)
    assert isinstance(observer, NatsObserver)
    info = observer.consumer_info(queue)
    return 0 if info is None else int(info.num_waiting or 0)


def blocked_claim(
    queue: Any, observer: Observer, timeout: float | None = 30.0, most: int | None = None
) -> Background[Any]:
    """Starts a claim, of one job or many, in a thread; returns when the server holds it."""
    before = blocked_claims(observer, queue.name)
    claim = Background(
        lambda: queue.claim(timeout) if most is None else queue.claim_many(most, timeout)
    )
    eventually(lambda: not claim.running or blocked_claims(observer, queue.name) > before)
    return claim


def must_claim(queue: Any, timeout: float = 10.0) -> Any:
    """Claims a job that has to come."""
    job = queue.claim(timeout)
    assert job is not None, f"no job within {timeout} s"
    return job


def drain(queue: Any, observer: Observer, timeout: float = 20.0) -> list[bytes]:
    """Claims and acks until the server holds nothing of the queue; the payloads in turn."""
    found: list[bytes] = []
    end = time.monotonic() + timeout
    while True:
        job = queue.claim(0.2)
        if job is not None:
            found.append(job.payload)
            with contextlib.suppress(cwist_jq.LeaseLost):
                job.ack()
        elif not (observer.ready_and_claimed(queue.name) or observer.delayed(queue.name)):
            return found
        assert time.monotonic() < end, f"not empty: {observer.leftovers(queue.name)}"


def leftovers(observer: Observer, queue: str, *, dead: int = 0) -> list[str]:
    """What a drained queue with that many dead letters must not hold."""
    found = [line for line in observer.leftovers(queue) if line not in _KEPT]
    if isinstance(observer, NatsObserver) and dead:
        mine = f"{dead} messages in {observer.stream(queue)}_DEAD"
        found = [line for line in found if line != mine]
    count = len(observer.dead(queue))
    return found if count == dead else [*found, f"{count} dead letters, not {dead}"]


# ---- processes ----


class Child:
    """A program of tests.fault.programs in a process of its own, spoken to by lines."""

    def __init__(self, name: str, *words: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fault.programs", name, *words],
            cwd=servers.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
        )
        watchdog.watch(self.pid)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def line(self) -> str:
        """The next line that it prints."""
        output: IO[str] | None = self.process.stdout
        assert output is not None
        line = output.readline()
        assert line, f"it ended early: {self.errors()}"
        return line.rstrip("\n")

    def go_on(self) -> None:
        """Ends its wait for a line."""
        to: IO[str] | None = self.process.stdin
        assert to is not None
        to.write("\n")
        to.flush()

    def errors(self) -> str:
        """What it wrote to stderr, once it has ended."""
        output: IO[str] | None = self.process.stderr
        assert output is not None
        return output.read()

    def wait(self, timeout: float = 20.0) -> int:
        """Waits for the end; the exit code."""
        return self.process.wait(timeout)

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.process.kill()
        self.process.wait()
        watchdog.forget(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def cut_points(total: int, count: int) -> list[int]:
    """Where to cut so many bytes: at the ends, and between them evenly. Half of them, as a rule."""
    count = count if servers.thorough() else max(count // 2, 6)
    inner = {round(total * step / (count - 3)) for step in range(count - 2)}
    return sorted(inner | {1, max(total - 1, 1)})


def results_of(call: Callable[..., Any], items: list[Any]) -> list[Any]:
    """What a batch did with each item: an id or None, or the exception."""
    try:
        value = call(items)
    except cwist_jq.Error as error:
        found = error.results if error.results is not None else [error] * len(items)
        assert len(found) == len(items)
        return list(found)
    return [None] * len(items) if value is None else list(value)
