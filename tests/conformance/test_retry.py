"""Nack, release and time: when a job comes back, and as what (SPEC rules 4, 5, 12)."""

from __future__ import annotations

import itertools
import time

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, no_job
from tests.observers import Observer
from tests.waiting import Background


def test_a_nacked_job_comes_back_at_once(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    job_id = queue.enqueue(b"x", type="t")
    claim(queue).nack()
    job = claim(queue, timeout=0)
    assert (job.payload, job.type, job.id, job.attempts) == (b"x", "t", job_id, 2)
    job.ack()
    assert observer.leftovers(queue_name) == []


def test_a_released_job_comes_back_at_once_and_spent_no_attempt(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    job_id = queue.enqueue(b"x", type="t")
    for _ in range(7):
        job = claim(queue, timeout=0)
        assert (job.payload, job.type, job.id, job.attempts) == (b"x", "t", job_id, 1)
        job.release()
        assert observer.ready_and_claimed(queue_name) == 1
    drain(queue, 1)
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("visibility", [0.2, 5.0])
def test_the_retry_delay_is_kept_whatever_the_visibility(
    make_queue: MakeQueue, visibility: float
) -> None:
    """S13, S14: a job nacked with a delay comes at its time, independent of the lease."""
    queue = make_queue(visibility_timeout=visibility, retry_delay=0.6)
    queue.enqueue(b"x")
    claim(queue).nack()
    start = time.monotonic()
    no_job(queue)
    job = claim(queue)
    waited = time.monotonic() - start
    assert 0.55 < waited < 1.2
    assert job.attempts == 2
    job.ack()


def test_every_retry_waits_for_its_delay_and_then_the_job_is_dead(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """S14: a failing job must not burn its attempts in milliseconds."""
    queue = make_queue(max_retries=4, retry_delay=0.2)
    queue.enqueue(b"x")
    moments = []
    for attempt in range(1, 5):
        job = claim(queue)
        moments.append(time.monotonic())
        assert job.attempts == attempt
        job.nack()
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert min(gaps) > 0.18
    assert len(observer.dead(queue_name)) == 1
    no_job(queue, timeout=0.3)


def test_a_retry_does_not_belong_to_the_worker_that_failed(make_queue: MakeQueue) -> None:
    """L12: who nacked goes away; another worker gets the job at its time."""
    first = make_queue(retry_delay=0.4, consumer="first")
    first.enqueue(b"x")
    claim(first).nack()
    start = time.monotonic()
    first.close()
    job = claim(make_queue(consumer="second"))
    assert 0.3 < time.monotonic() - start < 1.2
    job.ack()


def test_a_waiting_job_is_delivered_once(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D07: a wait longer than the lease is not counted as time in flight, and copies nothing."""
    queue = make_queue(visibility_timeout=0.1, retry_delay=0.8)
    queue.enqueue(b"x")
    claim(queue).nack()
    start = time.monotonic()
    workers = [Background(make_queue(visibility_timeout=0.1).claim, 1.3) for _ in range(3)]
    job = queue.claim(1.3)
    jobs = [job for job in [job, *(worker.result() for worker in workers)] if job is not None]
    # A short lease may run out before all the others are asked: the first delivery counts.
    assert min(job.attempts for job in jobs) == 2
    assert time.monotonic() - start > 0.7
    for late in jobs:
        try:
            late.ack()
        except cwist_jq.LeaseLost:
            continue
    if observer.ready_and_claimed(queue_name):
        drain(queue, 1)
    assert observer.leftovers(queue_name) == []


def test_jobs_due_together_are_promoted_once(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D10: many promoters at the same moment; each job is delivered once."""
    queue = make_queue(retry_delay=0.3)
    ids = {queue.enqueue(b"%d" % number) for number in range(60)}
    for job in [claim(queue) for _ in range(60)]:
        job.nack()

    def work(worker: cwist_jq.Queue) -> list[tuple[str, int]]:
        seen = []
        while (job := worker.claim(0.8)) is not None:
            seen.append((job.id, job.attempts))
            job.ack()
        return seen

    workers = [Background(work, make_queue()) for _ in range(4)]
    seen = [one for worker in workers for one in worker.result()]
    assert sorted(seen) == sorted((job_id, 2) for job_id in ids)
    assert observer.leftovers(queue_name) == []


def test_the_id_stays_through_all_deliveries(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Rule 12: nack, nack with a delay, release, a lease that ended, and the dead letter."""
    queue = make_queue(visibility_timeout=0.3, max_retries=5)
    slow = make_queue(visibility_timeout=0.3, max_retries=5, retry_delay=0.1)
    job_id = queue.enqueue(b"x", type="t")
    seen = []

    def next_one(worker: cwist_jq.Queue) -> cwist_jq.Job:
        job = claim(worker)
        seen.append((job.id, job.attempts))
        return job

    next_one(queue).nack()
    next_one(slow).nack()
    next_one(queue).release()
    next_one(queue)  # dropped: the lease ends
    next_one(queue).release()
    next_one(queue).nack()
    next_one(queue).nack("enough")
    assert seen == [(job_id, n) for n in (1, 2, 3, 3, 4, 4, 5)]
    assert [letter.id for letter in observer.dead(queue_name)] == [job_id]
    assert [letter.attempts for letter in observer.dead(queue_name)] == [5]


def test_the_handle_that_nacks_decides_about_delay_and_death(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Rule 13: max_retries and the retry delay are those of the handle that acts."""
    patient = make_queue(max_retries=10)
    strict = make_queue(max_retries=2)
    patient.enqueue(b"x")
    claim(patient).nack()
    claim(strict).nack()
    assert [letter.attempts for letter in observer.dead(queue_name)] == [2]
    assert patient.dead_count() == strict.dead_count() == 1
