"""Batches on NATS: cut at any byte, without their stream, with leases that ran out, too large."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import cut_points, drain, leftovers, results_of
from tests.proxy import DOWN, UP, Proxy
from tests.waiting import eventually

pytestmark = [pytest.mark.engine("nats"), pytest.mark.servers("all")]

BATCH = 12
POINTS = 9
VISIBILITY = 1.5

_LOST = (cwist_jq.LeaseLost, cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown)


def _names(mark: str) -> list[bytes]:
    return [b"%s %d" % (mark.encode(), number) for number in range(BATCH)]


def _warm(queue: Any) -> None:
    """Opens both connections, so that a cut strikes the batch and not a greeting."""
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


def _claim_all(queue: Any, names: Sequence[bytes], others: list[bytes]) -> dict[bytes, Any]:
    """Claims until all of these are there; what else comes is acked and noted in others."""
    found: dict[bytes, Any] = {}

    def complete() -> bool:
        for job in queue.claim_many(BATCH, 0.2):
            if job.payload in names:
                found[job.payload] = job
            else:
                job.ack()
                others.append(job.payload)
        return len(found) == len(names)

    eventually(complete)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_batch_of_enqueues_tells_the_truth(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, L06: stored once if told so, at most once when nobody knows, else not at all."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0)
    steady = make_queue()
    total = _measure(proxy, queue, lambda: queue.enqueue_many(_names("measure")), direction)
    told: dict[bytes, Any] = {}
    for point in cut_points(total, POINTS):
        _warm(queue)
        names = _names(f"cut after {point}")
        proxy.cut_after(point, direction)
        told |= zip(names, results_of(queue.enqueue_many, names), strict=True)
        proxy.flow()
    stored = [name for name in drain(steady, observer) if name.startswith(b"cut")]
    found = Counter(stored)
    for name, result in told.items():
        if isinstance(result, str):
            assert found[name] == 1, name
        elif isinstance(result, cwist_jq.OutcomeUnknown):
            assert found[name] <= 1, name
        else:
            assert isinstance(result, cwist_jq.NotSent | cwist_jq.ConnectionFailed), result
            assert found[name] == 0, name
    assert stored == [name for name in told if found[name]], "not in the order of the batches"
    assert any(isinstance(result, cwist_jq.OutcomeUnknown) for result in told.values())
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("end", ["ack_many", "nack_many", "release_many"])
def test_a_cut_batch_of_ends_loses_nothing(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    end: str,
    direction: str,
) -> None:
    """L05, D08: an acked job stays away, any other comes back, whatever byte was the last."""
    options = {"visibility_timeout": VISIBILITY, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    steady = make_queue(**options)
    settle = getattr(queue, end)
    queue.enqueue_many(_names("measure"))
    others: list[bytes] = []
    jobs = list(_claim_all(queue, _names("measure"), others).values())
    total = _measure(proxy, queue, lambda: settle(jobs), direction)
    drain(steady, observer)
    told: dict[bytes, Any] = {}
    for point in cut_points(total, POINTS):
        names = _names(f"cut after {point}")
        steady.enqueue_many(names)
        claimed = _claim_all(queue, names, others)
        _warm(queue)
        proxy.cut_after(point, direction)
        results = results_of(settle, list(claimed.values()))
        told |= zip(claimed, results, strict=True)
        proxy.flow()
    others += drain(steady, observer)
    found = Counter(name for name in others if name.startswith(b"cut"))
    assert leftovers(observer, queue_name) == []
    assert all(result is None or isinstance(result, _LOST) for result in told.values())
    if end == "ack_many":
        # An ack may be repeated: every one works in the end.
        assert set(told.values()) == {None}
        assert not found
    else:
        # A release is a copy first: twice is allowed there.
        assert set(found) == set(told)
        assert max(found.values()) <= (2 if end == "release_many" else 1)


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_batch_of_claims_loses_nothing(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05: what was on its way comes back when its lease is over, and nothing comes twice."""
    options = {"visibility_timeout": 0.6, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    steady = make_queue(**options)
    queue.enqueue_many(_names("measure"))
    total = _measure(proxy, queue, lambda: queue.claim_many(BATCH, 2.0), direction)
    drain(steady, observer)
    for point in cut_points(total, POINTS):
        names = _names(f"cut after {point}")
        steady.enqueue_many(names)
        queue.dead_count()
        proxy.cut_after(point, direction)
        acked = queue.claim_many(BATCH, 5.0)
        proxy.flow()
        assert acked, "the claim goes on over a new connection"
        good = [
            job.payload
            for job, result in zip(acked, results_of(queue.ack_many, acked), strict=True)
            if result is None
        ]
        found = Counter(good + drain(steady, observer))
        assert found == dict.fromkeys(names, 1)
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_step_of_a_worker_loses_nothing(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, L11: ack_and_claim: what is told as acked stays away, what is next is there once."""
    options = {"visibility_timeout": VISIBILITY, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    steady = make_queue(**options)

    def step(mark: str, point: int | None) -> tuple[int, Counter[bytes], Counter[bytes]]:
        done, waiting = _names(f"{mark} done"), _names(f"{mark} next")
        queue.enqueue_many(done)
        jobs = queue.claim_many(BATCH, 2.0)
        queue.enqueue_many(waiting)
        queue.dead_count()
        proxy.forget()
        if point is not None:
            proxy.cut_after(point, direction)
        following = queue.ack_and_claim(jobs, BATCH, 5.0)
        total = sum(len(piece.data) for piece in proxy.pieces(direction))
        proxy.flow()
        queue.ack_many(following)
        acked = Counter(job.payload for job in (*jobs, *following))
        acked.update(drain(steady, observer))
        return total, acked, Counter(done + waiting)

    total, found, expected = step("measure", None)
    assert found == expected
    for point in cut_points(total, POINTS):
        _, found, expected = step(f"cut after {point}", point)
        assert found == expected
    assert leftovers(observer, queue_name) == []


def test_the_stream_is_deleted_between_batches(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """B01: the leases are lost with it, and the next batch has a stream again, in order."""
    queue = make_queue()
    queue.enqueue_many(_names("before"))
    jobs = queue.claim_many(BATCH, 2.0)
    assert len(jobs) == BATCH
    observer.wipe(queue_name)
    for result in results_of(queue.ack_many, jobs):
        assert isinstance(result, cwist_jq.LeaseLost)
    ids = queue.enqueue_many(_names("after"))
    assert len(set(ids)) == BATCH
    assert drain(queue, observer) == _names("after")


def test_leases_that_ran_out_in_a_batch(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """D04: each job of a batch has its own lease; nothing is sent for one that is over."""
    queue = make_queue(visibility_timeout=0.8)
    queue.enqueue_many(_names("lease"))
    claimed = time.monotonic()
    jobs = queue.claim_many(BATCH, 2.0)
    kept = jobs[::2]
    while time.monotonic() < claimed + 1.0:
        for job in kept:
            job.extend()
    results = results_of(queue.ack_many, jobs)
    assert results[::2] == [None] * len(kept)
    assert all(isinstance(result, cwist_jq.LeaseLost) for result in results[1::2])
    assert sorted(drain(queue, observer)) == sorted(_names("lease")[1::2])
    assert leftovers(observer, queue_name) == []


def test_steps_bring_whole_batches(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """R06: what the server tells of a poll that is over says nothing of the next one."""
    queue = make_queue()
    rounds = 8
    expected = [name for number in range(rounds) for name in _names(f"round {number}")]
    queue.enqueue_many(expected)
    jobs = queue.claim_many(BATCH, 2.0)
    found = [job.payload for job in jobs]
    for _ in range(rounds - 1):
        jobs = queue.ack_and_claim(jobs, BATCH, 2.0)
        assert len(jobs) == BATCH
        found += [job.payload for job in jobs]
    queue.ack_many(jobs)
    assert found == expected
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
def test_more_bytes_than_are_taken_at_once(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """B01: a batch of large jobs comes in parts; no job is dropped, none spends an attempt."""
    queue = make_queue()
    payloads = [bytes([number]) * 1_000_000 for number in range(45)]
    queue.enqueue_many(payloads)
    found: list[bytes] = []
    while len(found) < len(payloads):
        jobs = queue.claim_many(len(payloads), 2.0)
        assert jobs
        assert {job.attempts for job in jobs} == {1}
        found += [job.payload for job in jobs]
        queue.nack_many(jobs[:1])  # a redelivery among them
        queue.ack_many(jobs[1:])
        again = queue.claim(2.0)
        assert again is not None
        if again.attempts == 2:
            again.ack()
        else:
            again.release()
            drained = queue.claim_many(1, 2.0)
            queue.ack_many(drained)
            found += [job.payload for job in drained if job.attempts == 1]
    assert Counter(found) == Counter(payloads)


def test_all_or_none(make_queue: Callable[..., Any], observer: Any, queue_name: str) -> None:
    """B01: one step of the server, in order; a server that cannot is told, with both versions."""
    queue = make_queue()
    queue.enqueue(b"first")
    info = observer.stream_info(queue_name)
    if not observer.is_at_least(2, 12):
        with pytest.raises(cwist_jq.Unsupported, match=r"version 2\.\d+\.\d+; 2\.12 or newer"):
            queue.enqueue_all(_names("all"))
        assert drain(queue, observer) == [b"first"]
        return
    ids = queue.enqueue_all(_names("all"))
    assert ids == [str(int(info.state.last_seq) + 1 + number) for number in range(BATCH)]
    assert [job.id for job in queue.claim_many(BATCH + 1, 2.0)[1:]] == ids


@pytest.mark.slow
@pytest.mark.servers("pinned")
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_batch_of_all_or_none(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, B01: all of it or nothing, and one of them when the answer to the commit is lost."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0)
    steady = make_queue()
    queue.enqueue_all(_names("warm"))
    total = _measure(proxy, queue, lambda: queue.enqueue_all(_names("measure")), direction)
    drain(steady, observer)
    for point in cut_points(total, POINTS):
        _warm(queue)
        names = _names(f"cut after {point}")
        proxy.cut_after(point, direction)
        results = results_of(queue.enqueue_all, names)
        proxy.flow()
        found = [name for name in drain(steady, observer) if name != b"warm"]
        assert found in ([], names)
        if isinstance(results[0], str):
            assert found == names
        else:
            assert {type(result) for result in results} == {type(results[0])}
            assert isinstance(results[0], cwist_jq.OutcomeUnknown)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["ack_many", "nack_many"])
def test_a_lease_that_ends_while_a_batch_waits_for_a_link(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    queue_name: str,
    end: str,
) -> None:
    """D04: another worker has the job by then; nothing is sent for it, and the rest is done."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=10.0, visibility_timeout=3.0)
    other = make_queue(visibility_timeout=3.0)
    queue.enqueue_many([b"over", b"held"])
    jobs = queue.claim_many(2, 2.0)
    assert [job.payload for job in jobs] == [b"over", b"held"]
    over, held = jobs
    eventually(lambda: over.lease_remaining < 1.0)
    held.extend()
    proxy.refuse()
    proxy.cut()
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(results_of, getattr(queue, end), jobs)
        again = other.claim(5.0)
        assert again is not None
        assert (again.payload, again.attempts) == (b"over", 2)
        proxy.flow()
        lost, done = results.result(10.0)
    assert isinstance(lost, cwist_jq.LeaseLost)
    assert done is None
    again.nack()
    expected = {b"over": 3} if end == "ack_many" else {b"over": 3, b"held": 2}
    found: dict[bytes, int] = {}
    while len(found) < len(expected):
        job = other.claim(2.0)
        assert job is not None
        job.ack()
        found[job.payload] = job.attempts
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("step", ["claim_many", "ack_and_claim"])
def test_a_batch_over_a_slow_link(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    queue_name: str,
    step: str,
) -> None:
    """L05: as long as deliveries come the poll goes on: none is left to nobody."""
    count = 100
    queue = open_queue(proxy_url, queue_name, operation_timeout=10.0, visibility_timeout=20.0)
    make_queue(visibility_timeout=20.0).enqueue_many([b"first", *[b"x" * 100_000] * count])
    jobs = queue.claim_many(1, 2.0)
    proxy.delay(0.01, DOWN)
    sizes: list[int] = []
    while sum(sizes) < count:
        if step == "ack_and_claim":
            jobs = queue.ack_and_claim(jobs, count, 2.0)
        else:
            queue.ack_many(jobs)
            jobs = queue.claim_many(count, 2.0)
        assert {job.attempts for job in jobs} == {1}
        sizes.append(len(jobs))
    queue.ack_many(jobs)
    assert sum(sizes) == count
    assert max(sizes) > 70, "what fits into one poll comes together"


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, BATCH])
def test_a_delivery_that_comes_between_two_polls(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    most: int,
) -> None:
    """D04: it is a job as others are, and its lease runs since before it came."""
    queue = open_queue(proxy_url, queue_name, visibility_timeout=4.0)
    queue.enqueue_many(_names("first"))
    queue.ack_many(queue.claim_many(BATCH, 2.0))
    request, inbox = re.findall(rb"PUB (\$JS\.API\S+MSG\.NEXT\S+) (\S+) ", proxy.sent())[-1]
    queue.enqueue_many(_names("next"))

    async def ask(js: Any) -> None:
        await js._nc.publish(request.decode(), b'{"batch":1}', reply=inbox.decode())
        await js._nc.flush()

    observer.ask(ask)
    eventually(lambda: observer.claimed(queue_name) == 1)
    came = time.monotonic()
    eventually(lambda: time.monotonic() - came > 1.0)
    jobs = queue.claim_many(most, 2.0)
    assert jobs[0].payload == _names("next")[0]
    assert jobs[0].lease_remaining < 3.0
    while len(jobs) < BATCH:
        jobs += queue.claim_many(most, 2.0)
    queue.ack_many(jobs)
    assert [job.payload for job in jobs] == _names("next")
    assert {job.attempts for job in jobs} == {1}
