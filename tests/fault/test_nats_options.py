"""Unique and delayed jobs and dead letters on NATS, with the connection cut at any byte."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import cwist_jq
from cwist_jq import Item
from tests.fault.support import cut_points, drain, leftovers, must_claim, results_of
from tests.proxy import DOWN, UP, Proxy

pytestmark = [pytest.mark.engine("nats"), pytest.mark.servers("all")]

POINTS = 20
FEW = 8
VISIBILITY = 1.5

_FAILED = (cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown, cwist_jq.LeaseLost)


def _minor(observer: Any) -> int:
    async def version(js: Any) -> Any:
        return js._nc.connected_server_version

    return int(observer.ask(version).minor)


def _warm(queue: Any) -> None:
    """Opens both connections, so that a cut strikes the call and not a greeting."""
    queue.dead_count()
    queue.enqueue_many([b"warm", b"warm"])


def _measure(proxy: Proxy, queue: Any, call: Callable[[], Any], direction: str) -> int:
    """How many bytes the call sends that way once everything is warm."""
    _warm(queue)
    proxy.forget()
    call()
    total = sum(len(piece.data) for piece in proxy.pieces(direction))
    assert total > 0
    return total


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_enqueue_with_a_key_is_repeated(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, T05: never unknown, stored once, and the id that is told is that of the job."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)
    steady = make_queue()
    total = _measure(proxy, queue, lambda: queue.enqueue(b"P", dedupe_key="measure"), direction)
    drain(steady, observer)
    told = {}
    for point in cut_points(total, POINTS):
        _warm(queue)
        proxy.cut_after(point, direction)
        told[b"%d" % point] = str(queue.enqueue(b"%d" % point, dedupe_key=f"key {point}"))
        proxy.flow()
    found = []
    while (job := steady.claim(0.2)) is not None:
        if job.payload != b"warm":
            found.append((job.payload, job.id))
        job.ack()
    assert sorted(found) == sorted(told.items())
    assert leftovers(observer, queue_name) == []


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_batch_with_keys_tells_the_truth(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, L06: a job without a key is unknown when its reply is lost; one with a key never is."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)
    steady = make_queue()

    def items(mark: str) -> list[Item]:
        return [
            Item(f"{mark} {number}".encode(), dedupe_key=f"{mark} {number}" if number % 2 else None)
            for number in range(8)
        ]

    total = _measure(proxy, queue, lambda: queue.enqueue_many(items("measure")), direction)
    drain(steady, observer)
    told: dict[bytes, Any] = {}
    for point in cut_points(total, FEW):
        _warm(queue)
        batch = items(f"cut {point}")
        proxy.cut_after(point, direction)
        results = results_of(queue.enqueue_many, batch)
        told |= zip([bytes(item.payload) for item in batch], results, strict=True)
        proxy.flow()
    found = Counter(name for name in drain(steady, observer) if name.startswith(b"cut"))
    for name, result in told.items():
        if isinstance(result, str):
            assert found[name] == 1, name
        elif isinstance(result, cwist_jq.OutcomeUnknown):
            assert found[name] <= 1, name
        else:
            assert found[name] == 0, (name, result)
    assert leftovers(observer, queue_name) == []


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("delay", [0, 0.3], ids=["release", "snooze"])
def test_a_cut_release_of_a_unique_job_loses_nothing(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
    delay: float,
) -> None:
    """L05: each comes back, at most twice, and its key is free in the end and no earlier."""
    if delay and _minor(observer) < 12:
        return
    options = {"visibility_timeout": VISIBILITY, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    steady = make_queue(**options)

    def hold(mark: str) -> Any:
        steady.enqueue(mark.encode(), dedupe_key=mark)
        while (job := must_claim(queue)).payload != mark.encode():
            job.ack()
        return job

    for mark in ("first", "measure"):
        job = hold(mark)
        total = _measure(proxy, queue, partial(job.release, delay), direction)
    drain(steady, observer)
    names = []
    for point in cut_points(total, FEW):
        job = hold(f"cut {point}")
        queue.dead_count()
        proxy.cut_after(point, direction)
        with contextlib.suppress(*_FAILED):
            job.release(delay)
        proxy.flow()
        names.append(job.payload)
        held = steady.enqueue(b"no", dedupe_key=f"cut {point}")
        assert held == job.id
        found = [name for name in drain(steady, observer) if name != b"warm"]
        assert set(found) == {job.payload}
        assert len(found) <= 2
        again = steady.enqueue(b"free", dedupe_key=f"cut {point}")
        assert not isinstance(again, cwist_jq.DuplicateId)
        drain(steady, observer)
    assert leftovers(observer, queue_name) == []


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("which", ["one", "all"])
def test_a_cut_requeue_doubles_and_loses_nothing(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
    which: str,
) -> None:
    """L05, D08: each letter is a job again, or still a letter; both only until the job's claim."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)
    steady = make_queue(max_retries=1)

    def kill(mark: str) -> list[bytes]:
        names = [f"{mark} {number}".encode() for number in range(3 if which == "all" else 1)]
        steady.enqueue_many(names)
        while (job := steady.claim(0.1)) is not None:
            if job.payload == b"warm":
                job.ack()
            else:
                job.nack()
        return names

    def requeue() -> int:
        if which == "all":
            return int(queue.dead.requeue_all())
        queue.dead.requeue(queue.dead.page()[0].id)
        return 1

    kill("measure")
    total = _measure(proxy, queue, requeue, direction)
    drain(steady, observer)
    for point in cut_points(total, FEW):
        _warm(queue)
        drain(steady, observer)
        names = kill(f"cut {point}")
        moved = None
        proxy.cut_after(point, direction)
        with contextlib.suppress(*_FAILED):
            moved = requeue()
        proxy.flow()
        found = drain(steady, observer)
        if moved is not None:
            assert (moved, sorted(found)) == (len(names), names)
        left = [letter.payload for letter in observer.dead(queue_name)]
        assert sorted(found + left) == names
        steady.dead.requeue_all()
        drain(steady, observer)
    assert leftovers(observer, queue_name) == []


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_purge_of_a_letter_is_repeated(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05: what was sent and not answered is not told as missing."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=3.0)
    steady = make_queue(max_retries=1)

    def kill() -> str:
        job_id = steady.enqueue(b"dead")
        while (job := must_claim(steady)).payload != b"dead":
            job.ack()
        job.nack()
        return str(job_id)

    first = kill()
    total = _measure(proxy, queue, lambda: queue.dead.purge(first), direction)
    for point in cut_points(total, FEW):
        job_id = kill()
        _warm(queue)
        proxy.cut_after(point, direction)
        queue.dead.purge(job_id)
        proxy.flow()
        assert observer.dead(queue_name) == []
