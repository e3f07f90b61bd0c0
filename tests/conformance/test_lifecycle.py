"""A job from enqueue to ack, and what is left behind: nothing (SPEC rules 1, 2, 3)."""

from __future__ import annotations

from typing import Any

import cwist_jq
from tests.conformance.helpers import (
    MakeQueue,
    bytes_of,
    claim,
    drain,
    no_job,
    only_letter,
    redis_of,
)
from tests.observers import Observer


def test_a_job_goes_in_and_comes_out(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    job_id = queue.enqueue(b"hello", type="greeting")
    assert (observer.ready_and_claimed(queue_name), observer.claimed(queue_name)) == (1, 0)
    job = claim(queue)
    assert (job.payload, job.type, job.id, job.attempts) == (b"hello", "greeting", job_id, 1)
    assert (observer.ready_and_claimed(queue_name), observer.claimed(queue_name)) == (1, 1)
    no_job(queue)
    job.ack()
    assert observer.leftovers(queue_name) == []


def test_jobs_enqueued_before_any_worker_arrive_in_order(make_queue: MakeQueue) -> None:
    """L10: whatever the producer wrote first is there for the first worker."""
    producer = make_queue()
    ids = [producer.enqueue(b"%d" % number) for number in range(10)]
    producer.close()
    jobs = drain(make_queue(), 10)
    assert [job.payload for job in jobs] == [b"%d" % number for number in range(10)]
    assert [job.id for job in jobs] == ids


def test_jobs_enqueued_after_a_wipe_arrive(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """L10, L09: only the producer is there when the storage is lost; then a worker comes back."""
    worker = make_queue()
    worker.enqueue(b"before")
    drain(worker, 1)
    observer.wipe(queue_name)
    producer = make_queue()
    for number in range(10):
        producer.enqueue(b"%d" % number)
    assert [job.payload for job in drain(worker, 10)] == [b"%d" % n for n in range(10)]
    assert observer.leftovers(queue_name) == []


def test_a_queue_that_never_existed_is_empty(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """L10."""
    assert queue.dead_count() == 0
    no_job(queue)
    no_job(queue, timeout=0.05)
    assert observer.leftovers(queue_name) == []


def test_a_missing_and_an_empty_type_are_none(queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"a")
    queue.enqueue(b"b", type="")
    queue.enqueue(b"c", type=None)
    assert [job.type for job in drain(queue, 3)] == [None, None, None]


def test_a_drained_queue_holds_nothing(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """M01, M04: after every way through a queue, nothing is left that grows with the jobs."""
    queue = make_queue(max_retries=9, retry_delay=0.05)
    for number in range(30):
        queue.enqueue(b"%d" % number, type="t")
    for number in range(30):
        job = claim(queue)
        if number % 3 == 0:
            job.nack()
        elif number % 3 == 1:
            job.release()
        else:
            job.extend()
            job.ack()
    drain(queue, 20)
    assert observer.leftovers(queue_name) == []
    assert observer.dead(queue_name) == []


def test_an_acked_job_does_not_come_back(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """An ack without its counterpart would show when the lease is over."""
    queue = make_queue(visibility_timeout=0.2)
    queue.enqueue(b"x")
    claim(queue).ack()
    no_job(queue, timeout=0.5)
    assert observer.leftovers(queue_name) == []


def test_equal_payloads_nacked_together_all_come_back(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """A delay store keyed by payload and attempts would merge these."""
    queue = make_queue(retry_delay=0.2, max_retries=3)
    ids = [queue.enqueue(b"same", type="same") for _ in range(12)]
    jobs = [claim(queue) for _ in range(12)]
    for job in jobs:
        job.nack()
    again = drain(queue, 12)
    assert sorted(job.id for job in again) == sorted(ids)
    assert {(job.payload, job.type, job.attempts) for job in again} == {(b"same", "same", 2)}
    assert observer.leftovers(queue_name) == []


def test_what_stays_on_redis_is_the_stream_and_the_settings(
    make_queue: MakeQueue, observer: Observer, queue_name: str, engine: str
) -> None:
    """Rule 3, with the names of what stays."""
    queue = make_queue(retry_delay=0.02)
    queue.enqueue(b"x")
    claim(queue).nack()
    claim(queue).ack()
    if engine == "redis":
        assert redis_of(observer).keys(queue_name) == ["conf", "s"]
    assert observer.ready_and_claimed(queue_name) == 0


def test_the_server_keeps_jobs_in_every_state_over_a_restart(
    own_server: Any, engine: str, make_observer: Any, queue_name: str
) -> None:
    """Ready, claimed, delayed and dead jobs are there after the server was restarted."""
    with cwist_jq.connect(own_server.url) as conn:
        mortal = conn.queue(queue_name, max_retries=1, visibility_timeout=1.0)
        mortal.enqueue(b"dead", type="dead")
        claim(mortal).nack("too bad")
        queue = conn.queue(queue_name, visibility_timeout=1.0, retry_delay=0.3)
        ids = {}
        for name in ("claimed", "delayed", "ready"):
            ids[name] = queue.enqueue(bytes_of(70_000, len(name)), type=name)
        held = claim(queue)
        claim(queue).nack("later")
        own_server.restart()
        assert held.type == "claimed"
        found: dict[str | None, cwist_jq.Job] = {}
        while len(found) < 3:
            job = claim(queue)
            found[job.type] = job
            job.ack()
        assert {kind: job.id for kind, job in found.items()} == ids
        assert {kind: job.attempts for kind, job in found.items()} == {
            "claimed": 2,
            "delayed": 2,
            "ready": 1,
        }
        assert all(job.payload == bytes_of(70_000, len(str(kind))) for kind, job in found.items())
        assert queue.dead_count() == 1
        observer = make_observer(engine, own_server.url)
        assert only_letter(observer, queue_name).reason == "too bad"
        assert only_letter(observer, queue_name).payload == b"dead"
