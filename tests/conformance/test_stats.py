"""Statistics: what the server holds, and what one handle did."""

from __future__ import annotations

import time

import cwist_jq
from cwist_jq import Item
from tests.conformance.helpers import MakeQueue, claim, delays, drain
from tests.observers import Observer
from tests.waiting import PATIENCE, Background, eventually


def test_an_empty_queue(queue: cwist_jq.Queue) -> None:
    stats = queue.stats()
    assert (stats.ready, stats.claimed, stats.delayed, stats.dead) == (0, 0, 0, 0)
    assert stats.oldest_ready is None
    assert stats.paused is False
    assert sum(stats[7:]) == 0


def test_each_state_is_counted(make_queue: MakeQueue, observer: Observer) -> None:
    """X03."""
    queue = make_queue()
    queue.enqueue_many([b"%d" % number for number in range(10)])
    claimed = queue.claim_many(3, 5)
    claim(queue).nack(dead=True)
    later = int(delays(queue, observer))
    if later:
        queue.enqueue(b"later", delay=60)
    stats = make_queue().stats()
    assert (stats.ready, stats.claimed, stats.delayed, stats.dead) == (6, 3, later, 1)
    queue.ack_many(claimed)
    assert make_queue().stats()[:4] == (6, 0, later, 1)


def test_a_nacked_job_that_waits_is_counted_once(make_queue: MakeQueue, observer: Observer) -> None:
    """Among the delayed; among the claimed on NATS, whose server cannot tell."""
    queue = make_queue(retry_delay=60)
    queue.enqueue(b"x")
    claim(queue).nack()
    stats = queue.stats()
    wanted = (0, 1, 0) if observer.engine == "nats" else (0, 0, 1)
    assert (stats.ready, stats.claimed, stats.delayed) == wanted
    assert stats.oldest_ready is None


def test_a_waiting_worker_is_counted(make_queue: MakeQueue) -> None:
    """One that had a job before: Redis before 7.2 does not know others that only wait."""
    queue, worker = make_queue(), make_queue()
    queue.enqueue(b"first")
    claim(worker).ack()
    waiting = Background(worker.claim, PATIENCE)
    eventually(lambda: queue.stats().consumers >= 1)
    queue.enqueue(b"x")
    job = waiting.result()
    assert job is not None
    job.ack()


def test_the_age_of_the_oldest_ready_job(queue: cwist_jq.Queue) -> None:
    """It is that of a job that can be claimed, not of one that somebody has."""
    start = time.monotonic()
    queue.enqueue(b"first")
    time.sleep(0.5)
    after_first = time.monotonic()
    queue.enqueue(b"second")
    age = queue.stats().oldest_ready
    assert age is not None
    assert 0.45 < age < time.monotonic() - start + 0.1
    job = claim(queue)
    time.sleep(0.2)
    age = queue.stats().oldest_ready
    assert age is not None
    assert 0.15 < age < time.monotonic() - after_first + 0.1
    drain(queue, 1)
    assert queue.stats().oldest_ready is None
    job.ack()


def test_a_handle_counts_what_it_did(make_queue: MakeQueue) -> None:
    """Each handle for itself, from when it was opened."""
    queue, other = make_queue(max_retries=3), make_queue()
    queue.enqueue(b"a")
    queue.enqueue_many([b"b", b"c", Item(b"d", dedupe_key="k"), Item(b"no", dedupe_key="k")])
    queue.enqueue(b"no", dedupe_key="k")
    claim(queue).release()
    claim(queue).nack()
    claim(queue).nack(dead=True)
    jobs = queue.claim_many(10, 5)
    queue.ack_many(jobs[:1])
    queue.release_many(jobs[1:2])
    queue.nack_many(jobs[2:])
    stats = queue.stats()
    counted = {
        "enqueued": 4,
        "delivered": 3 + len(jobs),
        "acked": 1,
        "nacked": 2 + len(jobs[2:]),
        "released": 2,
        "buried": 1,
    }
    assert {name: getattr(stats, name) for name in counted} == counted
    assert sum(other.stats()[7:]) == 0


def test_lapsed_deliveries_that_are_buried_count(make_queue: MakeQueue) -> None:
    queue = make_queue(max_retries=1, visibility_timeout=0.3)
    queue.enqueue(b"x")
    claim(queue)
    assert queue.claim(1.0) is None
    stats = queue.stats()
    assert (stats.dead, stats.buried, stats.nacked, stats.delivered) == (1, 1, 0, 1)
