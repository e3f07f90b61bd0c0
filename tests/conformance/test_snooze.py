"""Jobs that are put off: handed back for later, and no attempt is spent (SPEC rules 12, 14)."""

from __future__ import annotations

import time

import pytest

import cwist_jq
from tests.conformance.helpers import (
    MakeQueue,
    bytes_of,
    claim,
    delays,
    drain,
    give_away,
    is_at_least,
    no_job,
)
from tests.observers import Observer

LATE = 0.9


@pytest.mark.slow
def test_a_job_that_is_put_off_comes_later_and_spends_nothing(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D07: again and again, with leases much shorter than the wait."""
    queue = make_queue(max_retries=2, visibility_timeout=0.3)
    if not delays(queue, observer):
        return
    payload = bytes_of(5000)
    job_id = queue.enqueue(payload, type="t")
    claim(queue).nack()
    for _ in range(3):
        job = claim(queue)
        assert (job.id, job.type, job.payload, job.attempts) == (job_id, "t", payload, 2)
        start = time.monotonic()
        job.release(0.7)
        no_job(queue)
        assert observer.claimed(queue_name) == 0
        again = claim(queue)
        assert 0.65 < time.monotonic() - start < 0.7 + LATE
        assert again.id == job_id
        again.release()
    drain(queue, 1)
    assert observer.leftovers(queue_name) == []


def test_a_server_without_delays_says_so(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """The job stays claimed and comes back with its lease."""
    if is_at_least(observer, 2, 12):
        return
    queue = make_queue(visibility_timeout=0.4)
    queue.enqueue(b"x")
    job = claim(queue)
    with pytest.raises(cwist_jq.Unsupported, match=r"2\.12"):
        job.release(5)
    with pytest.raises(cwist_jq.Closed):
        job.ack()
    again = claim(queue)
    assert again.attempts == 2
    again.release()
    drain(queue, 1)
    assert observer.leftovers(queue_name) == []


def test_a_late_call_puts_nothing_off(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D04."""
    queue = make_queue(visibility_timeout=0.4)
    if not delays(queue, observer):
        return
    queue.enqueue(b"x")
    old, new = give_away(queue)
    with pytest.raises(cwist_jq.LeaseLost):
        old.release(0.1)
    new.ack()
    no_job(queue, 0.4)
    assert observer.leftovers(queue_name) == []
