"""What Jobs hold in C: payloads until they are read, handles until they are dropped."""

from __future__ import annotations

import gc
import os
import threading

import pytest

import cwist_jq
from cwist_jq import _lib
from tests.conformance.helpers import MakeQueue, claim

LARGE = os.urandom(200_000)


def _gather(queue: cwist_jq.Queue, count: int) -> list[cwist_jq.Job]:
    jobs: list[cwist_jq.Job] = []
    while len(jobs) < count:
        jobs += queue.claim_many(count - len(jobs), 5.0)
    return jobs


@pytest.mark.parametrize("size", [0, 1, _lib.SMALL - 1, _lib.SMALL, _lib.SMALL + 1, 200_000])
def test_a_payload_can_be_read_before_and_after_the_end(queue: cwist_jq.Queue, size: int) -> None:
    payload = LARGE[:size]
    queue.enqueue_many([payload] * 4)
    before, *after = _gather(queue, 4)
    assert before.payload == payload
    assert before.payload is before.payload
    before.ack()
    after[0].ack()
    queue.ack_many(after[1:])
    assert [job.payload for job in [before, *after]] == [payload] * 4


def test_a_large_payload_is_read_while_another_thread_acks(queue: cwist_jq.Queue) -> None:
    for _ in range(20):
        queue.enqueue_many([LARGE] * 8)
        jobs = _gather(queue, 8)
        read: list[bytes] = []
        begin = threading.Barrier(2)

        def reader(jobs: list[cwist_jq.Job] = jobs, read: list[bytes] = read) -> None:
            begin.wait()  # noqa: B023 (it ends before the next round)
            read.extend(job.payload for job in jobs)

        thread = threading.Thread(target=reader)
        thread.start()
        begin.wait()
        queue.ack_many(jobs)
        thread.join()
        assert read == [LARGE] * 8


def test_dropped_jobs_leave_no_handle_and_come_back(make_queue: MakeQueue) -> None:
    queue = make_queue(visibility_timeout=0.5)
    gc.collect()
    before = _lib.live_handles()
    ids = queue.enqueue_many([b"x", LARGE, b"y", b"z"])
    jobs = _gather(queue, 4)
    queue.ack_many(jobs[:2])
    jobs[2].ack()
    assert _lib.live_handles() == before + 1
    del jobs
    assert _lib.live_handles() == before
    job = claim(queue)
    assert (job.id, job.attempts) == (ids[3], 2)
    job.ack()


def test_a_claim_that_finds_nothing_leaves_nothing(queue: cwist_jq.Queue) -> None:
    before = _lib.live_handles()
    assert queue.claim_many(1000, 0) == queue.ack_and_claim([], 5, 0) == []
    assert queue.claim(0) is None
    assert _lib.live_handles() == before


def test_what_is_left_of_a_lease(make_queue: MakeQueue) -> None:
    queue = make_queue(visibility_timeout=20.0)
    queue.enqueue(b"x")
    job = claim(queue)
    assert 15.0 < job.lease_remaining <= 20.0
    job.ack()
    assert job.lease_remaining == 0.0
