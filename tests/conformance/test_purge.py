"""Purge: what is ready or delayed goes, nothing else."""

from __future__ import annotations

import cwist_jq
from tests.conformance.helpers import MakeQueue, bury, claim, delays, drain, no_job
from tests.observers import Observer
from tests.waiting import PATIENCE, Background


def test_ready_and_delayed_jobs_go(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue()
    bury(queue, cwist_jq.Item(b"dead"))
    queue.enqueue_many([b"%d" % number for number in range(20)])
    held = queue.claim_many(3, 5)
    later = delays(queue, observer)
    if later:
        queue.enqueue_many([cwist_jq.Item(b"later", delay=60)] * 4)
    assert queue.purge() == 17 + 4 * later
    no_job(queue)
    assert observer.ready_and_claimed(queue_name) == 3
    assert observer.delayed(queue_name) == 0
    assert queue.dead_count() == 1
    queue.ack_many(held)
    assert queue.purge() == 0
    assert queue.dead.purge_all() == 1
    assert observer.leftovers(queue_name) == []


def test_a_claimed_job_is_not_touched(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Neither its lease, nor what may still happen to it; a retry later is no ready job."""
    queue = make_queue(visibility_timeout=0.5)
    job_id = queue.enqueue(b"x")
    lapsed = claim(queue)
    assert queue.purge() == 0
    job = claim(queue)
    assert (job.id, job.attempts) == (job_id, 2)
    assert queue.purge() == 0
    job.nack()
    again = claim(queue)
    assert (again.id, again.attempts) == (job_id, 3)
    again.ack()
    assert lapsed.id == job_id
    assert observer.leftovers(queue_name) == []


def test_a_queue_that_is_not_there(queue: cwist_jq.Queue) -> None:
    assert queue.purge() == 0


def test_many_jobs(queue: cwist_jq.Queue, observer: Observer, queue_name: str) -> None:
    """More than fit into one piece of the work."""
    queue.enqueue_many([b"x"] * 5000)
    assert queue.purge() == 5000
    assert observer.leftovers(queue_name) == []
    queue.enqueue(b"after")
    assert [job.payload for job in drain(queue, 1)] == [b"after"]


def test_a_purge_beside_workers_and_producers_ends(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Only what was there when it began; each job is purged or delivered, never both."""
    queue, producer, worker = make_queue(), make_queue(), make_queue()
    queue.enqueue_many([b"old"] * 2000)
    stop: list[bool] = []

    def produce() -> int:
        count = 0
        while not stop:
            producer.enqueue_many([b"new"] * 10)
            count += 10
        return count

    def work() -> int:
        count = 0
        while not stop:
            jobs = worker.claim_many(10, 0.1)
            count += len(jobs)
            if jobs:
                worker.ack_many(jobs)
        return count

    producing, working = Background(produce), Background(work)
    purged = Background(queue.purge).result(3 * PATIENCE)
    stop.append(True)
    made, done = 2000 + producing.result(), working.result()
    rest = 0
    while jobs := worker.claim_many(1000, 0):
        rest += len(jobs)
        worker.ack_many(jobs)
    assert purged + done + rest == made
    assert observer.leftovers(queue_name) == []
