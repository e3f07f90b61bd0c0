"""A connection cut at any byte of a job's end leaves nothing behind once the queue is drained."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import cut_points, drain, leftovers, must_claim
from tests.proxy import DOWN, UP, Proxy
from tests.waiting import eventually

POINTS = 24
FEW_POINTS = 10
VISIBILITY = 1.5
LONG_VISIBILITY = 2.5

_LOST = (
    cwist_jq.LeaseLost,
    cwist_jq.ConnectionFailed,
    cwist_jq.OutcomeUnknown,
)


@dataclass(frozen=True)
class _End:
    """One way in which a delivery ends."""

    name: str
    call: Callable[[Any], None]
    max_retries: int = 1000
    retry_delay: float = 0.0

    def options(self, visibility: float) -> dict[str, Any]:
        """The options of a queue on which deliveries end so."""
        return {
            "visibility_timeout": visibility,
            "max_retries": self.max_retries,
            "retry_delay": self.retry_delay,
        }


ENDS = [
    _End("ack", lambda job: job.ack()),
    _End("nack", lambda job: job.nack()),
    _End("nack-delayed", lambda job: job.nack(), retry_delay=0.2),
    _End("release", lambda job: job.release()),
    _End("dead", lambda job: job.nack(reason="the end"), max_retries=1),
]


def _measure(proxy: Proxy, queue: Any, end: _End, direction: str) -> int:
    """How many bytes this end of a delivery sends that way once everything is warm."""
    for payload in (b"warm", b"measure"):
        queue.enqueue(payload)
        job = must_claim(queue)
        while job.payload != payload:
            job.ack()
            job = must_claim(queue)
        proxy.forget()
        end.call(job)
    return sum(len(piece.data) for piece in proxy.pieces(direction))


def _cut_each(proxy: Proxy, queue: Any, end: _End, points: list[int], direction: str) -> set[bytes]:
    """Claims a job for every point, then cuts the end of each; those that reported success."""
    jobs = []
    for point in points:
        queue.enqueue(b"cut after %d" % point)
        jobs.append(must_claim(queue))
    good: set[bytes] = set()
    accepted = proxy.accepted
    for point, job in zip(points, jobs, strict=True):
        queue.dead_count()  # so that the cut strikes the end and not a new connection's greeting
        proxy.cut_after(point, direction)
        with contextlib.suppress(*_LOST):
            end.call(job)
            good.add(job.payload)
        proxy.flow()
    assert proxy.accepted - accepted >= len(points) - 1, "not every point was cut"
    return good


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_a_cut_leaves_nothing_behind(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    engine: str,
    queue_name: str,
    end: _End,
    direction: str,
) -> None:
    """L05, L11, D08: count enqueued = acked + dead, whatever byte was the last to pass."""
    options = end.options(VISIBILITY)
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0, **options)
    steady = make_queue(**options)
    total = _measure(proxy, queue, end, direction)
    assert total > 0
    warm = {letter.payload for letter in observer.dead(queue_name)}
    drain(steady, observer)
    points = cut_points(total, POINTS)
    good = _cut_each(proxy, queue, end, points, direction)
    drained = Counter(drain(steady, observer))
    letters = Counter(letter.payload for letter in observer.dead(queue_name))
    everything = {b"cut after %d" % point for point in points}
    print(f"{engine} {end.name} {direction}: {total} bytes, {len(points)} cuts, {len(good)} good")

    assert leftovers(observer, queue_name, dead=letters.total()) == []
    assert set(drained) | set(letters) <= everything | warm
    if end.name == "dead":
        # Every one of them is dead, once: by this call, or by a claim after it.
        assert letters == dict.fromkeys(everything | warm, 1)
        assert not drained
        for letter in observer.dead(queue_name):
            assert letter.attempts == 1
            assert (letter.cause, letter.reason) in (("nacked", "the end"), ("lease-expired", None))
    elif end.name == "ack":
        assert not letters
        # An ack may be repeated, so each is told in the end to have worked, and stays away.
        assert good == everything
        assert not drained
    else:
        assert not letters
        # Each came back exactly once. A release on NATS is a copy first: twice is allowed there.
        most = 2 if engine == "nats" and end.name == "release" else 1
        assert set(drained) == everything
        assert max(drained.values()) <= most


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_a_cut_without_a_second_try_leaves_nothing_behind(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    end: _End,
) -> None:
    """L05: as when the worker dies there; what the server got is all that ever comes."""
    options = end.options(LONG_VISIBILITY)
    queue = open_queue(proxy_url, queue_name, operation_timeout=0.15, **options)
    steady = make_queue(**options)
    points = cut_points(_measure(proxy, queue, end, UP), FEW_POINTS)
    drain(steady, observer)
    before = len(observer.dead(queue_name))
    jobs = []
    for point in points:
        steady.enqueue(b"cut after %d" % point)
        jobs.append(must_claim(queue))
    for point, job in zip(points, jobs, strict=True):
        eventually(lambda: _reconnected(queue))
        proxy.cut_after(point, UP)
        proxy.refuse()
        with contextlib.suppress(*_LOST):
            end.call(job)
        proxy.flow()
    drained = Counter(drain(steady, observer))
    letters = Counter(letter.payload for letter in observer.dead(queue_name)[before:])
    everything = {b"cut after %d" % point for point in points}
    assert set(drained) | set(letters) <= everything
    if end.name == "dead":
        assert letters == dict.fromkeys(everything, 1)
    elif end.name == "ack":
        assert b"cut after 0" in drained
        assert set(drained.values()) <= {1}
    else:
        assert set(drained) == everything
    assert leftovers(observer, queue_name, dead=before + letters.total()) == []


def _reconnected(queue: Any) -> bool:
    with contextlib.suppress(cwist_jq.ConnectionFailed):
        queue.dead_count()
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_enqueue_is_stored_once_or_not(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    make_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
    direction: str,
) -> None:
    """D08: success and OutcomeUnknown tell the truth; nothing is ever sent a second time."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=2.0)
    queue.enqueue(b"first")
    proxy.forget()
    queue.enqueue(b"measure")
    total = sum(len(piece.data) for piece in proxy.pieces(direction))
    points = cut_points(total, POINTS)
    stored, unknown = {b"first", b"measure"}, set()
    for point in points:
        payload = b"cut after %d" % point
        queue.dead_count()
        proxy.cut_after(point, direction)
        try:
            queue.enqueue(payload)
            stored.add(payload)
        except cwist_jq.OutcomeUnknown:
            unknown.add(payload)
        finally:
            proxy.flow()
    drained = Counter(drain(make_queue(), observer))
    assert set(drained.values()) == {1}
    assert stored <= set(drained) <= stored | unknown
    assert unknown
