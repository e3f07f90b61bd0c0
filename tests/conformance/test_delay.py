"""Jobs that are to wait: on the server alone, and for their time exactly (SPEC rules 1, 2, 7)."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest

import cwist_jq
from cwist_jq import Item
from tests.conformance.helpers import MakeQueue, bytes_of, claim, delays, drain, no_job
from tests.observers import Observer
from tests.waiting import PATIENCE, Background, eventually

#: How late a job may be; SPEC allows 0.25 s on Redis and 0.5 s on NATS at the 95th percentile.
LATE = 0.9


@pytest.mark.slow
def test_a_delayed_job_comes_once_and_at_its_time(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D07: a wait much longer than the lease, with five workers that look all the time."""
    queue = make_queue(visibility_timeout=0.3)
    if not delays(queue, observer):
        return
    start = time.monotonic()
    job_id = queue.enqueue(b"x", type="t", delay=1.5)
    assert not isinstance(job_id, cwist_jq.DuplicateId)
    no_job(queue)
    assert observer.delayed(queue_name) == 1
    assert observer.ready_and_claimed(queue_name) == 0
    workers = [Background(make_queue(visibility_timeout=5).claim, 3.0) for _ in range(5)]
    (job,) = [job for job in (worker.result() for worker in workers) if job is not None]
    came = next(worker.ended_at for worker in workers if worker.result() is job) - start
    assert 1.45 < came < 1.5 + LATE
    assert (job.id, job.type, job.payload, job.attempts) == (job_id, "t", b"x", 1)
    job.ack()
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("delay", [0, 0.0, dt.timedelta(0)])
def test_no_delay_is_ready_at_once(queue: cwist_jq.Queue, delay: float | dt.timedelta) -> None:
    job_id = queue.enqueue(b"x", delay=delay)
    assert [job.id for job in drain(queue, 1)] == [job_id]


@pytest.mark.parametrize("delay", [0.0001, dt.timedelta(milliseconds=20)])
def test_a_short_delay_is_soon_over(
    queue: cwist_jq.Queue, observer: Observer, delay: float | dt.timedelta
) -> None:
    if delays(queue, observer):
        job_id = queue.enqueue(b"x", delay=delay)
        job = claim(queue, timeout=LATE + 0.3)
        assert (job.id, job.attempts) == (job_id, 1)
        job.ack()


def test_what_waits_keeps_all_that_it_is(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    if not delays(queue, observer):
        return
    payload = bytes_of(300_000)
    headers = {"traceparent": "00-4bf9-00f0-01", "Lang": "ü"}
    job_id = queue.enqueue(payload, type="größe", delay=0.2, headers=headers)
    job = claim(queue)
    assert (job.id, job.type, job.payload, job.attempts) == (job_id, "größe", payload, 1)
    assert job.headers == headers
    job.ack()
    assert observer.leftovers(queue_name) == []


def test_delays_in_a_batch_hold_nobody_else_up(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    if not delays(queue, observer):
        return
    start = time.monotonic()
    ids = queue.enqueue_many(
        [Item(b"last", delay=1.2), b"first", Item(b"third", delay=0.6), b"second"], type="t"
    )
    assert len(set(ids)) == 4
    moments = {}
    for payload in (b"first", b"second", b"third", b"last"):
        job = claim(queue)
        moments[payload] = time.monotonic() - start
        assert (job.payload, job.type) == (payload, "t")
        assert job.id == ids[[b"last", b"first", b"third", b"second"].index(payload)]
        job.ack()
    assert moments[b"second"] < 0.6
    assert 0.55 < moments[b"third"] < 0.6 + LATE
    assert 1.15 < moments[b"last"] < 1.2 + LATE
    assert observer.leftovers(queue_name) == []


def test_all_or_none_with_delays(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    if not delays(queue, observer):
        return
    ids = queue.enqueue_all([Item(b"%d" % number, delay=0.4) for number in range(5)])
    no_job(queue)
    assert observer.delayed(queue_name) == 5
    jobs = [claim(queue) for _ in range(5)]
    assert sorted(job.id for job in jobs) == sorted(ids)
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


@pytest.mark.slow
def test_jobs_that_are_due_together_come_once_each(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D10: 500 jobs due in the same second, ten workers."""
    queue = make_queue()
    if not delays(queue, observer):
        return
    ids = queue.enqueue_many([Item(b"%d" % number, delay=1.0) for number in range(500)])

    def work(worker: cwist_jq.Queue) -> list[tuple[str, int]]:
        seen = []
        while jobs := worker.claim_many(20, 2.5):
            seen += [(job.id, job.attempts) for job in jobs]
            worker.ack_many(jobs)
        return seen

    workers = [Background(work, make_queue()) for _ in range(10)]
    seen = [one for worker in workers for one in worker.result(3 * PATIENCE)]
    assert len(seen) == 500
    assert {job_id for job_id, _ in seen} == set(ids)
    assert {attempts for _, attempts in seen} == {1}
    assert observer.leftovers(queue_name) == []


def test_a_delayed_job_outlives_a_restart_of_the_server(
    own_server: Any, engine: str, make_observer: Any, queue_name: str
) -> None:
    """T01: it lives on the server alone, and comes at its time although the server was away."""
    with cwist_jq.connect(own_server.url) as conn, conn.queue(queue_name) as queue:
        if not delays(queue, make_observer(engine, own_server.url)):
            return
        start = time.monotonic()
        job_id = queue.enqueue(b"x", delay=2.0)
        waiting = Background(queue.claim, 15.0)
        time.sleep(0.3)
        own_server.stop()
        own_server.start()
        job = waiting.result()
        assert job is not None
        assert (job.id, job.attempts) == (job_id, 1)
        assert 1.95 < waiting.ended_at - start < 6.0
        job.ack()


def test_a_delayed_job_needs_no_worker_to_become_ready(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """The producer goes away; the first look after the due time brings the job."""
    producer = make_queue()
    if not delays(producer, observer):
        return
    producer.enqueue(b"x", delay=0.3)
    producer.close()
    time.sleep(0.6)
    worker = make_queue()
    job = eventually(lambda: worker.claim(0), timeout=LATE, pause=0.05)
    assert job is not None
    assert job.attempts == 1
    job.ack()
    assert observer.leftovers(queue_name) == []
