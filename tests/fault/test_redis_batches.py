"""Batches on Redis: cut at any byte, refused in the middle, given away in part, and large."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import cut_points, drain, leftovers, results_of, took
from tests.proxy import DOWN, UP, Proxy
from tests.waiting import eventually

pytestmark = [pytest.mark.engine("redis"), pytest.mark.servers("all")]

POINTS = 12
COUNT = 40
VISIBILITY = 1.5

_LOST = (cwist_jq.LeaseLost, cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown)


def _batch(tag: str) -> list[bytes]:
    """Payloads that are copied into the request, and some that are sent from where they stand."""
    return [
        b"%s-%d-" % (tag.encode(), number) + b"x" * (20_000 if number % 7 == 3 else 30)
        for number in range(COUNT)
    ]


def _measure(proxy: Proxy, direction: str, call: Callable[[], Any]) -> int:
    """How many bytes the call sends that way."""
    proxy.forget()
    call()
    return sum(len(piece.data) for piece in proxy.pieces(direction))


def _stored(observer: Any, queue: str) -> Counter[bytes]:
    return Counter(fields[b"payload"] for _, fields in observer.entries(queue))


# ---- cuts ----


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_enqueue_many_tells_the_truth(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """B01, D08, L05: an id is stored once, an unknown one at most once, the others are not."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0)
    queue.enqueue_many(_batch("warm"))
    total = _measure(proxy, direction, lambda: queue.enqueue_many(_batch("measure")))
    told: dict[bytes, Any] = {}
    for point in cut_points(total, POINTS):
        queue.dead_count()  # so that the cut strikes the batch and not a new connection's greeting
        proxy.cut_after(point, direction)
        batch = _batch(f"at{point}")
        told |= zip(batch, results_of(queue.enqueue_many, batch), strict=True)
        proxy.flow()
    stored = _stored(observer, queue_name)
    assert set(stored.values()) == {1}
    kinds = Counter(type(result).__name__ for result in told.values())
    print(f"{direction}: {total} bytes, {kinds}")
    for payload, result in told.items():
        if isinstance(result, str):
            assert payload in stored
        elif not isinstance(result, cwist_jq.OutcomeUnknown):
            assert payload not in stored, result
    assert kinds["OutcomeUnknown"] > 0
    if direction == DOWN:
        assert kinds["str"] > 0, "what was answered before the cut keeps its result"


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_enqueue_all_is_all_or_none(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """D08: whatever byte was the last to pass."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0)
    queue.enqueue_all(_batch("warm"))
    total = _measure(proxy, direction, lambda: queue.enqueue_all(_batch("measure")))
    whole = none = 0
    for point in cut_points(total, POINTS):
        queue.dead_count()
        proxy.cut_after(point, direction)
        batch = _batch(f"at{point}")
        results = results_of(queue.enqueue_all, batch)
        proxy.flow()
        assert all(isinstance(result, str | cwist_jq.OutcomeUnknown) for result in results)
        stored = _stored(observer, queue_name)
        found = sum(stored[payload] for payload in batch)
        assert found in (0, COUNT)
        whole += found == COUNT
        none += found == 0
        if isinstance(results[0], str):
            assert found == COUNT
    assert (none if direction == UP else whole) > 0


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_ack_many_is_repeated(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, L11: every ack is told to have worked, and none of the jobs comes back."""
    options = {"visibility_timeout": 30.0}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    queue.enqueue_many(_batch("measure"))
    jobs = queue.claim_many(COUNT, 5.0)
    total = _measure(proxy, direction, lambda: queue.ack_many(jobs))
    for point in cut_points(total, POINTS):
        queue.enqueue_many(_batch(f"at{point}"))
        jobs = queue.claim_many(COUNT, 5.0)
        assert len(jobs) == COUNT
        proxy.cut_after(point, direction)
        queue.ack_many(jobs)
        proxy.flow()
        assert observer.ready_and_claimed(queue_name) == 0
    assert drain(make_queue(**options), observer) == []
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ["nack_many", "release_many"])
def test_a_cut_end_gives_each_job_back_once(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    end: str,
) -> None:
    """L05, D08: a repeat of what was done is told as done."""
    options = {"visibility_timeout": 30.0, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    batch = _batch("job")
    queue.enqueue_many(batch)
    jobs = queue.claim_many(COUNT, 5.0)
    total = _measure(proxy, DOWN, lambda: getattr(queue, end)(jobs))
    for point in cut_points(total, POINTS):
        jobs = queue.claim_many(COUNT, 5.0)
        assert sorted(job.payload for job in jobs) == sorted(batch)
        proxy.cut_after(point, DOWN)
        getattr(queue, end)(jobs)
        proxy.flow()
    assert sorted(drain(make_queue(**options), observer)) == sorted(batch)
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_claim_many_loses_nothing(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05: what was on its way comes back when its lease ends."""
    options = {"visibility_timeout": VISIBILITY, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    batch = _batch("job")
    queue.enqueue_many(batch)
    jobs: list[Any] = []
    total = _measure(proxy, direction, lambda: jobs.extend(queue.claim_many(COUNT, 5.0)))
    queue.release_many(jobs)
    done: Counter[bytes] = Counter()
    for point in cut_points(total, POINTS)[::3]:
        queue.dead_count()
        proxy.cut_after(point, direction)
        with contextlib.suppress(cwist_jq.ConnectionFailed):
            jobs = queue.claim_many(3, 5.0)
            queue.ack_many(jobs)
            done.update(job.payload for job in jobs)
        proxy.flow()
    done.update(drain(make_queue(**options), observer))
    assert done == Counter(batch)
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_ack_and_claim_settles_the_acks(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """L05, L11: the acks are told to have worked, whatever became of the claim beside them."""
    options = {"visibility_timeout": VISIBILITY, "max_retries": 1000}
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    batch = _batch("job") + _batch("more")
    queue.enqueue_many(batch)
    jobs = queue.claim_many(3, 5.0)
    done = Counter(job.payload for job in jobs)
    total = _measure(proxy, direction, lambda: jobs.extend(queue.ack_and_claim(jobs[:3], 3)))
    jobs = jobs[3:]
    for point in cut_points(total, POINTS):
        proxy.cut_after(point, direction)
        mine = [job.payload for job in jobs]
        try:
            jobs = queue.ack_and_claim(jobs, 3, 5.0)
            done.update(mine)
        except cwist_jq.Error as error:
            results = error.results or []
            pairs = zip(mine, results, strict=True)
            done.update(payload for payload, result in pairs if result is None)
            jobs = list(error.claimed or [])
        proxy.flow()
    rest = Counter(drain(make_queue(**options), observer))
    assert done + rest == Counter(batch)
    assert leftovers(observer, queue_name) == []


# ---- refused ----


def test_a_server_that_fills_up_during_a_batch(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    open_queue: Callable[..., Any],
    queue_name: str,
) -> None:
    """B01, S03: what fits is stored, in order; the rest says OOM, or that it was not sent."""
    server = make_server()
    watcher = make_observer("redis", server.url)
    queue = open_queue(server.url, queue_name, operation_timeout=1.0)
    queue.enqueue(b"first")
    used = watcher.client.info("memory")["used_memory"]
    watcher.client.config_set("maxmemory-policy", "noeviction")
    watcher.client.config_set("maxmemory", used + 3_000_000)
    batch = [b"%d" % number + b"x" * 50_000 for number in range(300)]
    results = results_of(queue.enqueue_many, batch)
    kept = [payload for payload, result in zip(batch, results, strict=True) if result is not None]
    fates = [type(result).__name__ for result in results]
    assert fates == sorted(fates, key=["str", "Refused", "NotSent"].index)
    assert set(fates) == {"str", "Refused", "NotSent"}
    assert "OOM" in str(results[fates.index("Refused")])
    stored = [fields[b"payload"] for _, fields in watcher.entries(queue_name)]
    assert stored == [b"first", *kept[: fates.count("str")]]

    watcher.client.config_set("maxmemory", "1mb")
    results = results_of(queue.enqueue_all, [b"a", b"b"])
    assert all(isinstance(result, cwist_jq.Refused) for result in results)
    assert len(watcher.entries(queue_name)) == len(stored)
    watcher.client.config_set("maxmemory", 0)
    assert len(queue.enqueue_all([b"a", b"b"])) == 2
    assert drain(queue, watcher) == [*stored, b"a", b"b"]


def test_too_much_for_one_step(make_queue: Callable[..., Any], observer: Any) -> None:
    """S03: all or none has a limit of 64 MiB; nothing is sent beyond it."""
    queue = make_queue()
    with pytest.raises(cwist_jq.TooLarge, match="67108864"):
        queue.enqueue_all([b"x" * (33 << 20), b"x" * (33 << 20)])
    assert observer.leftovers(queue.name) == []


# ---- given away ----


def test_leases_that_ended_are_told_one_by_one(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """L01: those given away are named; the others are acked."""
    queue, other = make_queue(visibility_timeout=1.0), make_queue(visibility_timeout=1.0)
    queue.enqueue_many([b"old", b"older"])
    old = queue.claim_many(2, 5.0)
    again: list[Any] = []

    def taken() -> bool:
        again.extend(other.claim_many(2, 0.3))
        return len(again) == 2

    eventually(taken)
    queue.enqueue_many([b"new", b"newer", b"newest"])
    new = queue.claim_many(3, 5.0)
    assert len(new) == 3
    with pytest.raises(cwist_jq.LeaseLost) as caught:
        queue.ack_many([new[0], old[0], new[1], old[1], new[2]])
    fates = [type(result).__name__ for result in caught.value.results or []]
    assert fates == ["NoneType", "LeaseLost", "NoneType", "LeaseLost", "NoneType"]
    other.ack_many(again)
    assert leftovers(observer, queue_name) == []


def test_jobs_removed_by_hand_are_counted(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """L01: one answer for many does not say which is missing: then it says how many."""
    queue = make_queue(visibility_timeout=30.0)
    ids = queue.enqueue_many([b"%d" % number for number in range(5)])
    jobs = queue.claim_many(5, 5.0)
    observer.client.xdel(observer.key(queue_name, "s"), ids[2])
    with pytest.raises(cwist_jq.OutcomeUnknown, match="1 of 5") as caught:
        queue.ack_many(jobs)
    assert len(caught.value.results or []) == 5
    assert leftovers(observer, queue_name) == []

    queue.enqueue_many([b"%d" % number for number in range(5)])
    jobs = queue.claim_many(5, 5.0)
    observer.client.delete(observer.key(queue_name, "s"))
    with pytest.raises(cwist_jq.LeaseLost) as lost:
        queue.ack_many(jobs)
    assert {type(result) for result in lost.value.results or []} == {cwist_jq.LeaseLost}


def test_given_away_ones_of_a_nack(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """L01: each job has an answer of its own; a script that is unknown is sent once."""
    queue = make_queue(visibility_timeout=30.0, max_retries=5)
    ids = queue.enqueue_many([b"%d" % number for number in range(5)])
    jobs = queue.claim_many(5, 5.0)
    observer.client.xdel(observer.key(queue_name, "s"), ids[2])
    observer.client.script_flush()
    with pytest.raises(cwist_jq.LeaseLost) as caught:
        queue.nack_many(jobs)
    fates = [result is None for result in caught.value.results or []]
    assert fates == [True, True, False, True, True]
    assert drain(queue, observer) == [b"0", b"1", b"3", b"4"]


# ---- large and many ----


@pytest.mark.slow
def test_sizes_around_every_boundary(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """P02: payloads that are copied, kept or sent from where they stand stay what they were."""
    queue = make_queue()
    sizes = [0, 1, 959, 2047, 2048, 2049, 8191, 8192, 16_384, 65_536, 1 << 20, (1 << 20) + 1]
    batch = [bytes([33 + step]) * size for step in range(3) for size in [*sizes, *sizes[::-1]]]
    batch += [b"%d" % number + b"y" * 9_000 for number in range(300)]
    queue.enqueue_many(batch)
    found: list[bytes] = []
    while len(found) < len(batch):
        jobs = queue.claim_many(1000, 5.0)
        assert jobs
        found += [bytes(job.payload) for job in jobs]
        queue.ack_many(jobs)
    assert found == batch
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
def test_a_claim_of_large_jobs_is_bounded(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
) -> None:
    """P05: a handle that has seen jobs of 1 MiB asks for 64 of them at once, not for 1000."""
    producer = make_queue()
    queue = open_queue(proxy_url, queue_name, operation_timeout=10.0)
    producer.enqueue(b"x" * (1 << 20))
    queue.ack_many(queue.claim_many(1, 5.0))
    producer.enqueue_many([b"%d" % number + b"x" * (1 << 20) for number in range(70)])
    jobs = queue.claim_many(1000, 5.0)
    assert 40 <= len(jobs) <= 64
    queue.ack_many(jobs)
    assert len(drain(queue, observer)) == 70 - len(jobs)


def test_round_trips(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
) -> None:
    """P01: a batch of 100 is one packet of commands each way, and so is the step of a worker."""
    queue = open_queue(proxy_url, queue_name, visibility_timeout=30.0)
    queue.enqueue_many([b"warm"])
    queue.ack_many(queue.claim_many(1, 5.0))

    def commands(call: Callable[[], Any]) -> tuple[Any, list[str]]:
        proxy.forget()
        result = call()
        ticks = ("EVALSHA", "EVAL")  # the recovery may ride along
        return result, [name for name in proxy.commands() if name not in ticks]

    _, names = commands(lambda: queue.enqueue_many([b"x"] * 100))
    assert names == ["XADD"] * 100
    jobs, names = commands(lambda: queue.claim_many(50, 5.0))
    assert names == ["XREADGROUP"]
    more, names = commands(lambda: queue.ack_and_claim(jobs, 50))
    assert names == ["XDEL", "XACK", "XREADGROUP"]
    assert len(more) == 50
    _, names = commands(lambda: queue.ack_many(more))
    assert names == ["XDEL", "XACK"]
    assert leftovers(observer, queue_name) == []


# ---- time ----


@pytest.fixture
def alarm() -> Iterator[None]:
    """A signal every 5 ms, as a sampling profiler sends it."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no timers that signal")
def test_a_periodic_signal_stretches_no_deadline(
    proxy: Proxy, proxy_url: str, open_queue: Callable[..., Any], queue_name: str, alarm: None
) -> None:
    """F04: each signal ends a system call, and the wait is not begun anew."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=0.5)
    queue.enqueue(b"before")
    proxy.stall(DOWN)
    with took(0.4, 2.5), pytest.raises(cwist_jq.OutcomeUnknown):
        queue.enqueue(b"during")
    proxy.flow()


def test_a_late_answer_to_acks_loses_no_job_of_the_poll(
    proxy: Proxy, proxy_url: str, open_queue: Callable[..., Any], make_queue: Callable[..., Any]
) -> None:
    """Rule 14: what the server gave with the acks is waited for, or handed back."""
    other = make_queue(visibility_timeout=60.0)
    slow = open_queue(proxy_url, other.name, operation_timeout=0.5, visibility_timeout=60.0)
    other.enqueue_many([b"%d" % number for number in range(60)])
    jobs = slow.claim_many(10, 2.0)
    proxy.delay(0.7, DOWN)
    try:
        came = slow.ack_and_claim(jobs, 25, timeout=6.0)
    except cwist_jq.Error as error:
        came = error.claimed or []
    proxy.flow()
    rest = other.claim_many(100, 0.5)
    assert len(came) + len(rest) == 50
    assert {job.attempts for job in rest} == {1}


def test_the_first_read_of_a_worker_is_a_small_one(
    proxy: Proxy, proxy_url: str, open_queue: Callable[..., Any], queue: Any
) -> None:
    """Nobody knows yet how large the jobs are; the others come in the same call."""
    queue.enqueue_many([b"%d" % number for number in range(100)])
    fresh = open_queue(proxy_url, queue.name)
    assert len(fresh.claim_many(100, 2.0)) == 100
    asked = [int(count) for count in re.findall(rb"COUNT\r\n\$\d+\r\n(\d+)\r\n", proxy.sent())]
    assert asked == [16, 84]
