"""One delivery, one owner: late calls change nothing, extend keeps the job (SPEC rule 6)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import (
    MakeQueue,
    bytes_of,
    claim,
    digest,
    drain,
    give_away,
    no_job,
    redis_of,
)
from tests.observers import Observer
from tests.waiting import Background

LATE: dict[str, Callable[[cwist_jq.Job], None]] = {
    "ack": lambda job: job.ack(),
    "nack": lambda job: job.nack("late"),
    "release": lambda job: job.release(),
    "extend": lambda job: job.extend(),
}


def _state(observer: Observer, name: str) -> Any:
    """What a late call must not change."""
    held = None
    if observer.engine == "redis":
        redis = redis_of(observer)
        pending = [
            (one["message_id"], one["consumer"], one["times_delivered"])
            for one in redis.pending(name)
        ]
        held = (redis.entries(name), redis.waiting(name), pending)
    return observer.ready_and_claimed(name), observer.claimed(name), observer.dead(name), held


@pytest.mark.parametrize("call", LATE.values(), ids=LATE)
@pytest.mark.parametrize("last", ["", "last"])
def test_a_late_call_changes_nothing(
    make_queue: MakeQueue,
    observer: Observer,
    queue_name: str,
    call: Callable[[cwist_jq.Job], None],
    last: str,
) -> None:
    """D04: the job was given to B; A's call reports it, and B's delivery goes on.

    `last`: A's delivery was its handle's last allowed one, so that its nack would bury the job.
    """
    first = make_queue(visibility_timeout=0.3, consumer="a", max_retries=1 if last else 9)
    second = make_queue(visibility_timeout=0.3, consumer="b", max_retries=9)
    first.enqueue(b"slow", type="t")
    old, new = give_away(first, second)
    new.extend()
    before = _state(observer, queue_name)
    with pytest.raises(cwist_jq.LeaseLost):
        call(old)
    assert _state(observer, queue_name) == before
    new.ack()
    assert observer.leftovers(queue_name) == []


def test_a_late_ack_does_not_save_a_crashed_second_worker(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D04: A acks too late, B crashes; C gets the job."""
    queue = make_queue(visibility_timeout=0.3)
    queue.enqueue(b"x")
    old, new = give_away(queue)
    with pytest.raises(cwist_jq.LeaseLost):
        old.ack()
    del new
    job = claim(make_queue(visibility_timeout=0.3))
    assert (job.payload, job.attempts) == (b"x", 3)
    job.ack()
    assert observer.leftovers(queue_name) == []


def test_a_late_call_after_the_job_is_gone(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(visibility_timeout=0.3)
    for call in LATE.values():
        queue.enqueue(b"x")
        old, new = give_away(queue)
        new.ack()
        with pytest.raises(cwist_jq.LeaseLost):
            call(old)
        assert observer.leftovers(queue_name) == []


def test_an_extended_job_stays_with_its_worker(make_queue: MakeQueue) -> None:
    """D02: a handler longer than the lease, with a second worker that polls all along."""
    queue = make_queue(visibility_timeout=0.4)
    other = make_queue(visibility_timeout=0.4)
    queue.enqueue(b"long")
    job = claim(queue)
    for _ in range(9):
        no_job(other, timeout=0.13)
        job.extend()
    job.ack()
    no_job(other)


def test_an_extended_job_comes_back_one_lease_after_its_last_extension(
    make_queue: MakeQueue,
) -> None:
    """D02: when the holder falls silent, the job returns within the visibility timeout."""
    queue = make_queue(visibility_timeout=0.4)
    queue.enqueue(b"x")
    job = claim(queue)
    for _ in range(3):
        time.sleep(0.15)
        job.extend()
    start = time.monotonic()
    again = claim(make_queue(visibility_timeout=0.4))
    assert 0.35 < time.monotonic() - start < 1.0
    assert again.attempts == 2
    with pytest.raises(cwist_jq.LeaseLost):
        job.extend()
    again.ack()


def test_expired_jobs_are_handed_out_once_each(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D01, L07: many workers at the moment when many leases end."""
    queue = make_queue(visibility_timeout=0.4)
    ids = [queue.enqueue(b"%d" % number) for number in range(20)]
    dead = [claim(queue) for _ in range(20)]
    assert len(dead) == 20
    long = [make_queue(visibility_timeout=0.4) for _ in range(6)]

    def work(worker: cwist_jq.Queue) -> list[tuple[str, int]]:
        seen = []
        while (job := worker.claim(1.0)) is not None:
            seen.append((job.id, job.attempts))
            job.ack()
        return seen

    seen = [one for worker in [Background(work, one) for one in long] for one in worker.result()]
    assert sorted(seen) == sorted((job_id, 2) for job_id in ids)
    assert observer.leftovers(queue_name) == []


def test_no_delivery_misses_its_payload(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """P03: leases and handlers of about the same length; every job ends acked, once."""
    count = 60
    queue = make_queue(visibility_timeout=0.06, max_retries=1000)
    sums = {}
    for number in range(count):
        payload = bytes_of(300 + number, number)
        sums[queue.enqueue(payload, type=str(number))] = (digest(payload), str(number))
    acked: list[str] = []

    def work(worker: cwist_jq.Queue, seed: int) -> None:
        pauses = random.Random(seed)
        while (job := worker.claim(0.6)) is not None:
            assert (digest(job.payload), job.type) == sums[job.id]
            time.sleep(pauses.uniform(0.01, 0.07))
            try:
                job.ack()
            except cwist_jq.LeaseLost:
                continue
            acked.append(job.id)

    options = {"visibility_timeout": 0.06, "max_retries": 1000}
    workers = [Background(work, make_queue(**options), seed) for seed in range(6)]
    for worker in workers:
        worker.result(30)
    assert sorted(acked) == sorted(sums)
    assert observer.leftovers(queue_name) == []


def test_an_ack_at_the_end_of_the_last_lease(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """X06: the job ends acked or dead, never both and never neither."""
    visibility = 0.2
    queue = make_queue(visibility_timeout=visibility, max_retries=1)
    ids = [queue.enqueue(b"%d" % number) for number in range(24)]
    acked = set()

    def ack_late(number: int) -> None:
        job = claim(queue)
        time.sleep(visibility - 0.03 + 0.002 * number)
        try:
            job.ack()
        except cwist_jq.LeaseLost:
            return
        acked.add(job.id)

    for worker in [Background(ack_late, number) for number in range(24)]:
        worker.result()
    no_job(queue, timeout=0.6)
    dead = {letter.id for letter in observer.dead(queue_name)}
    assert acked | dead == set(ids)
    assert not acked & dead
    assert observer.ready_and_claimed(queue_name) == 0
    assert observer.claimed(queue_name) == 0


def test_an_unsettled_job_of_a_closed_queue_comes_back(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """L06: closing a queue drops nothing; all it held comes back."""
    queue = make_queue(visibility_timeout=0.3)
    ids = [queue.enqueue(b"%d" % number) for number in range(3)]
    jobs = [claim(queue) for _ in range(3)]
    queue.close()
    for job in jobs:
        with pytest.raises(cwist_jq.Closed):
            job.ack()
    assert observer.claimed(queue_name) == 3
    again = drain(make_queue(visibility_timeout=0.3), 3)
    assert sorted(job.id for job in again) == sorted(ids)
    assert {job.attempts for job in again} == {2}
