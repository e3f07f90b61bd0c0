"""Ends of jobs that race with the ends of their leases."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import leftovers
from tests.waiting import eventually

JOBS = 160
THREADS = 8
VISIBILITY = 0.06


@pytest.mark.engine("redis")
@pytest.mark.servers("all")
def test_each_job_ends_acked_or_dead_never_both(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """X06, P03, D04: acks around the end of the last lease, while claims of others look for it."""
    queue = make_queue(visibility_timeout=VISIBILITY, max_retries=2)
    everything = {b"%d" % number for number in range(JOBS)}
    for payload in sorted(everything):
        queue.enqueue(payload)
    acked: list[bytes] = []
    claimed: list[tuple[bytes, int]] = []

    def work(_: int) -> None:
        while (job := queue.claim(5 * VISIBILITY)) is not None:
            claimed.append((job.payload, job.attempts))
            time.sleep(VISIBILITY * random.uniform(0.5, 3.0))
            try:
                job.ack()
                acked.append(job.payload)
            except cwist_jq.LeaseLost:
                pass

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    eventually(lambda: queue.claim(0.1) is None and not observer.ready_and_claimed(queue_name))
    letters = observer.dead(queue_name)
    dead = [letter.payload for letter in letters]
    print(f"{len(acked)} acked, {len(dead)} dead, {len(claimed)} deliveries")

    assert max(Counter(claimed).values()) == 1, "a delivery was given to two workers"
    assert Counter(acked + dead) == Counter(everything)
    assert acked
    assert dead, "no lease ran out: the race was not run"
    assert {letter.cause for letter in letters} == {"lease-expired"}
    assert leftovers(observer, queue_name, dead=len(dead)) == []


@pytest.mark.slow
@pytest.mark.servers("all")
def test_expired_jobs_are_given_to_one_worker_each(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """D01, D10: twenty leases end at once under sixteen blocked claims."""
    holder = make_queue(visibility_timeout=1.0)
    for number in range(20):
        holder.enqueue(b"%d" % number)
    for _ in range(20):
        assert holder.claim(1.0) is not None

    def work(_: int) -> list[bytes]:
        found = []
        queue = make_queue(visibility_timeout=1.0)
        while (job := queue.claim(1.5)) is not None:
            found.append(job.payload)
            assert job.attempts == 2
            time.sleep(0.02)
            job.ack()
        return found

    with ThreadPoolExecutor(16) as pool:
        found = [payload for part in pool.map(work, range(16)) for payload in part]
    assert Counter(found) == Counter(b"%d" % number for number in range(20))
    assert leftovers(observer, queue_name) == []
