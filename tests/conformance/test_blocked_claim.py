"""A claim that is blocked already gets whatever becomes claimable (SPEC rule 9)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, crash_while_holding, no_job
from tests.observers import Observer
from tests.waiting import Background, eventually

#: What a blocked claim may be late here; exact figures are the timing tests' business.
LATE = 1.0


@contextmanager
def _blocked(
    queue: cwist_jq.Queue, timeout: float | None = 30
) -> Iterator[Background[cwist_jq.Job | None]]:
    """A claim in another thread that has had the time to reach the server."""
    waiting = Background(queue.claim, timeout)
    time.sleep(0.25)
    assert waiting.running
    yield waiting
    assert not waiting.running


def _got(waiting: Background[cwist_jq.Job | None], within: float) -> cwist_jq.Job:
    start = time.monotonic()
    job = waiting.result()
    assert job is not None
    assert waiting.ended_at - start < within
    return job


@pytest.mark.parametrize("timeout", [30, None])
def test_a_new_job_reaches_a_blocked_claim(queue: cwist_jq.Queue, timeout: float | None) -> None:
    with _blocked(queue, timeout) as waiting:
        job_id = queue.enqueue(b"new")
        job = _got(waiting, LATE)
    assert (job.payload, job.id) == (b"new", job_id)
    job.ack()


def test_a_foreign_job_reaches_a_blocked_claim(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    with _blocked(queue) as waiting:
        observer.put(queue_name, b"new")
        job = _got(waiting, LATE)
    assert job.payload == b"new"
    job.ack()


@pytest.mark.parametrize(("give_back", "attempts"), [("nack", 2), ("release", 1)])
def test_a_job_that_is_given_back_reaches_a_blocked_claim(
    make_queue: MakeQueue, give_back: str, attempts: int
) -> None:
    queue = make_queue()
    queue.enqueue(b"x")
    held = claim(queue)
    with _blocked(make_queue()) as waiting:
        getattr(held, give_back)()
        job = _got(waiting, LATE)
    assert (job.payload, job.attempts) == (b"x", attempts)
    job.ack()


def test_a_due_retry_reaches_a_blocked_claim(make_queue: MakeQueue) -> None:
    """Nacked before the claim and during it."""
    queue = make_queue(retry_delay=0.5)
    queue.enqueue(b"x")
    claim(queue).nack()
    with _blocked(queue) as waiting:
        job = _got(waiting, LATE)
    assert job.attempts == 2
    with _blocked(make_queue()) as waiting:
        job.nack()
        again = _got(waiting, 0.5 + LATE)
    assert again.attempts == 3
    again.ack()


def test_an_expired_lease_reaches_a_blocked_claim(make_queue: MakeQueue) -> None:
    """L04: a lease that ends while the other worker is in a long claim."""
    queue = make_queue(visibility_timeout=0.6)
    queue.enqueue(b"x")
    dropped = claim(queue)
    with _blocked(make_queue(visibility_timeout=0.6)) as waiting:
        job = _got(waiting, 0.6 + LATE)
    assert (job.payload, job.attempts) == (b"x", 2)
    assert dropped.id == job.id
    job.ack()


@pytest.mark.needs_server
def test_all_jobs_of_a_killed_worker_reach_a_blocked_claim(
    make_queue: MakeQueue, url: str, queue_name: str, observer: Observer
) -> None:
    """L01, L03, L04: killed with -9; the rest of the world waits in claims."""
    queue = make_queue(visibility_timeout=0.6)
    ids = {queue.enqueue(b"%d" % number) for number in range(3)}
    for _ in range(3):
        crash_while_holding(url, queue_name, visibility_timeout=0.6)
    seen = set()
    for _ in range(3):
        job = claim(queue, 30)
        seen.add(job.id)
        job.ack()
    assert seen == ids
    assert observer.leftovers(queue_name) == []


def test_a_pull_of_a_closed_claim_catches_nothing(make_queue: MakeQueue) -> None:
    """R10: what a claim that was closed or interrupted asked for must not swallow a job."""
    first, second = make_queue(), make_queue()
    for end in (first.interrupt, first.close):
        with _blocked(first) as waiting:
            end()
            with pytest.raises((cwist_jq.Interrupted, cwist_jq.Closed)):
                waiting.result()
        second.enqueue(b"x")
        job = claim(second, 1.0)
        assert job.attempts == 1
        job.ack()


def test_interrupt_wakes_only_the_claims_of_its_handle(make_queue: MakeQueue) -> None:
    first, second = make_queue(), make_queue()
    with _blocked(second) as other, _blocked(first) as waiting:
        start = time.monotonic()
        first.interrupt()
        with pytest.raises(cwist_jq.Interrupted):
            waiting.result()
        assert time.monotonic() - start < 0.5
        assert other.running
        first.enqueue(b"x")
        _got(other, LATE).ack()
    no_job(first)  # an interrupt is not remembered


def test_close_wakes_blocked_claims(make_queue: MakeQueue) -> None:
    """F08."""
    queue = make_queue()
    with _blocked(queue) as waiting:
        start = time.monotonic()
        queue.close()
        with pytest.raises(cwist_jq.Closed):
            waiting.result()
        assert time.monotonic() - start < 1.0


def test_closing_the_connection_wakes_blocked_claims(url: str, queue_name: str) -> None:
    """F08."""
    conn = cwist_jq.connect(url)
    with _blocked(conn.queue(queue_name)) as waiting:
        conn.close()
        with pytest.raises(cwist_jq.Closed):
            waiting.result()


def test_many_blocked_claims_share_the_jobs(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Eight claims of one handle are blocked at once; each gets one of eight jobs."""
    queue = make_queue()
    waiting = [Background(queue.claim, 30) for _ in range(8)]
    time.sleep(0.3)
    ids = sorted(queue.enqueue(b"%d" % number) for number in range(8))
    jobs = [_got(one, 2 * LATE) for one in waiting]
    assert sorted(job.id for job in jobs) == ids
    for job in jobs:
        job.ack()
    assert observer.leftovers(queue_name) == []


def test_claims_keep_their_time(queue: cwist_jq.Queue) -> None:
    """R06: each claim on an empty queue lasts as long as it was told to."""
    no_job(queue)
    for timeout in (0, 0.01, 0.15, 0.4, 0.8):
        start = time.monotonic()
        no_job(queue, timeout)
        took = time.monotonic() - start
        assert timeout - 0.005 <= took < timeout + 0.35, timeout


def test_a_claim_may_be_the_first_to_touch_the_queue(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """S15, L10: workers first, then the first producer."""
    with _blocked(make_queue()) as waiting:
        make_queue().enqueue(b"first")
        _got(waiting, LATE).ack()
    eventually(lambda: observer.leftovers(queue_name) == [])
