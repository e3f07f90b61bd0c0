"""Backpressure: a full queue refuses, and drops nothing."""

from __future__ import annotations

import logging
import time

import pytest

import cwist_jq
from cwist_jq import DuplicateId, Item
from tests.conformance.helpers import MakeQueue, claim, drain, is_at_least
from tests.observers import Observer
from tests.waiting import Background


def _is_full(queue: cwist_jq.Queue) -> None:
    with pytest.raises(cwist_jq.QueueFull) as caught:
        queue.enqueue(b"one too many")
    assert queue.name in caught.value.text
    assert caught.value.code == -32


def test_a_full_queue_refuses(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """Ready and claimed jobs count; an ack makes room, at once."""
    queue = make_queue(max_length=3)
    ids = [queue.enqueue(b"%d" % number) for number in range(3)]
    _is_full(queue)
    job = claim(queue)
    _is_full(queue)
    job.ack()
    ids.append(queue.enqueue(b"3"))
    _is_full(queue)
    assert [job.id for job in drain(queue, 3)] == ids[1:]
    assert observer.leftovers(queue_name) == []


def test_delayed_jobs_count(make_queue: MakeQueue, observer: Observer) -> None:
    """On NATS a queue with a limit takes no delayed jobs, and says so."""
    queue = make_queue(max_length=2)
    if observer.engine == "nats":
        with pytest.raises(cwist_jq.Unsupported, match="max_length"):
            queue.enqueue(b"x", delay=1)
        assert queue.stats()[:4] == (0, 0, 0, 0)
        queue.enqueue(b"x")
        with pytest.raises(cwist_jq.Unsupported, match="max_length"):
            claim(queue).release(1)
        return
    queue.enqueue(b"later", delay=60)
    queue.enqueue(b"now")
    _is_full(queue)
    claim(queue).nack(delay=60)
    _is_full(queue)
    assert queue.stats().delayed == 2


@pytest.mark.engine("nats")
def test_that_it_excludes_delays_is_said_at_open(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "cwist_jq"):
        make_queue(max_length=2)
    (line,) = [record for record in caplog.records if "max_length" in record.getMessage()]
    assert line.levelno == logging.INFO
    assert "delay" in line.getMessage()


def test_a_batch_stores_what_fits(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """B01: a result for each item."""
    queue = make_queue(max_length=5)
    with pytest.raises(cwist_jq.QueueFull, match=r"items\[5\]") as caught:
        queue.enqueue_many([b"%d" % number for number in range(8)])
    results = caught.value.results
    assert results is not None
    assert [type(one) for one in results[:5]] == [str] * 5
    assert all(isinstance(one, (cwist_jq.QueueFull, cwist_jq.NotSent)) for one in results[5:])
    assert isinstance(results[5], cwist_jq.QueueFull)
    jobs = drain(queue, 5)
    assert [job.id for job in jobs] == results[:5]
    assert [job.payload for job in jobs] == [b"%d" % number for number in range(5)]
    assert observer.leftovers(queue_name) == []


def test_all_or_none_of_a_full_queue(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_length=5)
    if not is_at_least(observer, 2, 12):
        return
    queue.enqueue(b"first")
    with pytest.raises(cwist_jq.QueueFull):
        queue.enqueue_all([b"x"] * 5)
    assert observer.ready_and_claimed(queue_name) == 1
    queue.enqueue_all([b"x"] * 4)
    _is_full(queue)
    drain(queue, 5)


def test_the_moves_of_a_full_queue_are_never_refused(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Retry, release, lapse, due, death: nothing of what the queue has is lost."""
    queue = make_queue(max_length=3, visibility_timeout=0.5, max_retries=5)
    queue.enqueue_many([b"a", b"b", b"c"])
    _is_full(queue)
    claim(queue).nack()
    claim(queue).release()
    claim(queue).nack(delay=0.1)
    _is_full(queue)
    time.sleep(0.2)
    assert len(queue.claim_many(3, 5)) > 0
    time.sleep(0.6)  # all leases run out
    jobs: list[cwist_jq.Job] = []
    while len(jobs) < 3:
        jobs.append(claim(queue))
    assert {job.payload for job in jobs} == {b"a", b"b", b"c"}
    queue.ack_many(jobs[:2])
    jobs[2].nack(dead=True)
    assert observer.ready_and_claimed(queue_name) == 0
    assert queue.dead_count() == 1


def test_a_dead_letter_waits_until_there_is_room(make_queue: MakeQueue) -> None:
    """The letter stays where it is."""
    queue = make_queue(max_length=2)
    job_id = queue.enqueue(b"dead")
    claim(queue).nack(dead=True)
    queue.enqueue_many([b"a", b"b"])
    with pytest.raises(cwist_jq.QueueFull):
        queue.dead.requeue(job_id)
    with pytest.raises(cwist_jq.QueueFull) as caught:
        queue.dead.requeue_all()
    assert caught.value.done == 0
    assert queue.dead.read(job_id).payload == b"dead"
    claim(queue).ack()
    queue.dead.requeue(job_id)
    assert queue.dead_count() == 0
    assert {job.id for job in drain(queue, 2)} >= {job_id}


def test_a_duplicate_is_none_too_many(make_queue: MakeQueue) -> None:
    queue = make_queue(max_length=1)
    first = queue.enqueue(b"x", dedupe_key="k")
    again = queue.enqueue(b"x", dedupe_key="k")
    assert isinstance(again, DuplicateId)
    assert again == first
    with pytest.raises(cwist_jq.QueueFull):
        queue.enqueue(b"x", dedupe_key="other")
    drain(queue, 1)
    queue.enqueue(b"x", dedupe_key="other")
    drain(queue, 1)


def test_producers_at_the_same_moment_never_overfill(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    make_queue(max_length=50).enqueue(b"first")

    def produce(queue: cwist_jq.Queue) -> int:
        stored = 0
        for _ in range(30):
            try:
                queue.enqueue_many([Item(b"x", "t")] * 2)
                stored += 2
            except cwist_jq.QueueFull as error:
                stored += sum(isinstance(one, str) for one in error.results or [])
        return stored

    producers = [Background(produce, make_queue(max_length=50)) for _ in range(4)]
    assert sum(producer.result() for producer in producers) == 49
    assert observer.ready_and_claimed(queue_name) == 50
    drain(make_queue(), 50)
