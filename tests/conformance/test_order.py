"""Order of claims: first deliveries, and jobs that come back (SPEC rule 2)."""

from __future__ import annotations

import time

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, no_job
from tests.observers import Observer
from tests.waiting import Background


def test_first_deliveries_are_in_order(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Two producers that take turns, one of them foreign; two workers that take turns."""
    queues = [make_queue(), make_queue()]
    for number in range(0, 60, 2):
        queues[number // 2 % 2].enqueue(b"%d" % number)
        observer.put(queue_name, b"%d" % (number + 1))
    seen = []
    for number in range(60):
        job = claim(queues[number % 2])
        seen.append(int(job.payload))
        job.ack()
    assert seen == list(range(60))


def test_where_a_job_that_comes_back_stands(make_queue: MakeQueue, engine: str) -> None:
    """At the end on Redis, before new jobs on NATS."""
    queue = make_queue()
    for payload in (b"a", b"b", b"c"):
        queue.enqueue(payload)
    job = claim(queue)
    assert job.payload == b"a"
    job.nack()
    order = [job.payload for job in drain(queue, 3)]
    assert order == ([b"a", b"b", b"c"] if engine == "nats" else [b"b", b"c", b"a"])


def test_an_expired_job_is_claimed_before_much_later_ones(make_queue: MakeQueue) -> None:
    """Nobody claims when the lease ends: the later enqueue must not overtake."""
    queue = make_queue(visibility_timeout=0.3)
    queue.enqueue(b"first")
    dropped = claim(queue)
    time.sleep(0.3 + 0.3)
    queue.enqueue(b"second")
    job = claim(queue)
    assert (job.payload, job.attempts) == (b"first", 2)
    assert job.id == dropped.id
    job.ack()
    assert [job.payload for job in drain(queue, 1)] == [b"second"]


def test_a_due_job_is_claimed_before_much_later_ones(make_queue: MakeQueue) -> None:
    queue = make_queue(retry_delay=0.3)
    queue.enqueue(b"first")
    claim(queue).nack()
    time.sleep(0.3 + 0.3)
    queue.enqueue(b"second")
    assert [job.payload for job in drain(queue, 2)] == [b"first", b"second"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["due", "lapsed"])
def test_a_backlog_comes_back_before_much_later_jobs(make_queue: MakeQueue, how: str) -> None:
    """Ninety jobs at one moment, and nobody claims meanwhile."""
    queue = make_queue(visibility_timeout=2.0 if how == "lapsed" else 30.0, retry_delay=2.0)
    for _ in range(90):
        queue.enqueue(b"old")
    held = [claim(queue) for _ in range(90)]
    for job in held if how == "due" else ():
        job.nack()
    time.sleep(2.4)
    queue.enqueue(b"new")
    order = [job.payload for job in drain(queue, 91)]
    assert order == [b"old"] * 90 + [b"new"]


@pytest.mark.slow
def test_returned_jobs_do_not_starve_under_load(make_queue: MakeQueue) -> None:
    """A queue that is never empty: expired and due jobs are claimed in time all the same."""
    visibility = 0.4
    queue = make_queue(visibility_timeout=visibility, retry_delay=visibility)
    for payload in (b"expires", b"is due"):
        queue.enqueue(payload)
    dropped = claim(queue)
    claim(queue).nack()
    back_at = time.monotonic() + visibility
    for _ in range(60):  # a backlog
        queue.enqueue(b"%f" % time.monotonic())
    end = time.monotonic() + 1.2

    def produce() -> None:
        producer = make_queue()
        while time.monotonic() < end:
            producer.enqueue(b"%f" % time.monotonic())
            time.sleep(0.002)

    producer = Background(produce)
    early: list[float] = []
    returned: list[bytes] = []
    while (job := queue.claim(0.3)) is not None:
        job.ack()
        if job.attempts > 1:
            returned.append(job.payload)
        elif len(returned) < 2:
            early.append(float(job.payload))
        time.sleep(0.003)
    producer.result()
    assert sorted(returned) == [b"expires", b"is due"]
    assert max(early) < back_at + 0.25 + 0.1
    assert dropped.attempts == 1


def test_new_jobs_do_not_starve_behind_one_that_fails_for_ever(make_queue: MakeQueue) -> None:
    """A job that is nacked at once, again and again, lets the others through."""
    queue = make_queue(max_retries=1000, retry_delay=0.02)
    queue.enqueue(b"fails")
    for number in range(20):
        queue.enqueue(b"%d" % number)
    done = []
    for _ in range(200):
        job = claim(queue)
        if job.payload == b"fails":
            job.nack()
        else:
            done.append(int(job.payload))
            job.ack()
        if len(done) == 20:
            break
    assert done == list(range(20))
    job = claim(queue)
    job.ack()
    no_job(queue, 0.1)


def test_a_claim_takes_one_job_and_no_more(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D06: nothing is fetched ahead; what waits in a buffer would lose its lease there."""
    queue = make_queue()
    for number in range(5):
        queue.enqueue(b"%d" % number)
    job = claim(queue)
    assert observer.claimed(queue_name) == 1
    job.ack()
    other: cwist_jq.Queue = make_queue()
    assert len(drain(other, 4)) == 4
