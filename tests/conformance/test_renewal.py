"""Leases that the library keeps, on a thread that needs no interpreter lock."""

from __future__ import annotations

import ctypes
import gc
import logging
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

import cwist_jq
from tests import servers
from tests.conformance.helpers import MakeQueue, claim, crash_while_holding, no_job
from tests.observers import Observer
from tests.proxy import Proxy
from tests.waiting import PATIENCE, Background, eventually

VISIBILITY = 0.6


def _renewed(job: cwist_jq.Job) -> cwist_jq.Job:
    job.renew()
    job.renew()  # once more is no mistake
    return job


HOW: dict[str, Callable[[MakeQueue], cwist_jq.Job]] = {
    "renew": lambda make: _renewed(claim(make(visibility_timeout=VISIBILITY))),
    "auto_renew": lambda make: claim(make(visibility_timeout=VISIBILITY, auto_renew=True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_a_handler_of_ten_leases_runs_once(
    make_queue: MakeQueue, observer: Observer, queue_name: str, how: str
) -> None:
    """D02: a second worker looks all the time."""
    other = make_queue(visibility_timeout=VISIBILITY)
    job_id = other.enqueue(b"slow")
    job = HOW[how](make_queue)
    assert job.id == job_id
    watching = Background(other.claim, 9 * VISIBILITY)
    end = time.monotonic() + 10 * VISIBILITY
    while time.monotonic() < end:
        assert job.lease_lost is False
        assert job.lease_remaining > 0
        time.sleep(0.02)
    assert watching.result() is None
    job.ack()
    assert observer.leftovers(queue_name) == []


HOLDS_THE_LOCK = """
import ctypes, sys
import cwist_jq

with cwist_jq.connect(sys.argv[1]) as conn:
    queue = conn.queue(sys.argv[2], visibility_timeout=0.6, auto_renew=True)
    job = queue.claim(10)
    print("claimed", flush=True)
    ctypes.PyDLL(None).usleep(4_000_000)  # a PyDLL keeps the interpreter's lock
    print(job.attempts, job.lease_lost, flush=True)
    job.ack()
"""


@pytest.mark.slow
@pytest.mark.engine("redis", "nats")
def test_a_handler_that_holds_the_interpreter_lock_keeps_its_lease(
    make_queue: MakeQueue, observer: Observer, queue_name: str, url: str
) -> None:
    """D03: nothing of Python runs for seven leases; another process looks all the time."""
    other = make_queue(visibility_timeout=VISIBILITY)
    other.enqueue(b"slow")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, url, queue_name],
        cwd=servers.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "claimed\n"
        no_job(other, 3.5)
        assert worker.stdout.readline() == "1 False\n"
        assert worker.wait(PATIENCE) == 0
    assert observer.leftovers(queue_name) == []


def test_the_lock_is_really_held() -> None:
    """What the test before leans on: a thread of Python does not run meanwhile."""
    moments: list[float] = []

    def tick() -> None:
        for _ in range(60):
            moments.append(time.monotonic())
            time.sleep(0.01)

    ticking = Background(tick)
    eventually(lambda: moments)
    start = time.monotonic()
    ctypes.PyDLL(None).usleep(300_000)
    ticking.result()
    assert not [moment for moment in moments if start + 0.05 < moment < start + 0.25]


@pytest.mark.slow
def test_many_jobs_are_kept(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """D06: those of a batch that wait for their turn, too."""
    queue = make_queue(visibility_timeout=VISIBILITY, auto_renew=True)
    other = make_queue(visibility_timeout=VISIBILITY)
    queue.enqueue_many([b"%d" % number for number in range(200)])
    jobs = queue.claim_many(200, 5)
    while len(jobs) < 200:
        jobs += queue.claim_many(200, 5)
    no_job(other, 5 * VISIBILITY)
    assert not any(job.lease_lost for job in jobs)
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ["drop", "close"])
def test_a_job_that_is_given_up_comes_back(
    make_queue: MakeQueue, queue_name: str, end: str
) -> None:
    """Renewal ends with the handle, and with its queue: a forgotten job is not kept for ever."""
    queue = make_queue(visibility_timeout=VISIBILITY)
    other = make_queue(visibility_timeout=VISIBILITY)
    queue.enqueue(b"x")
    job: cwist_jq.Job | None = _renewed(claim(queue))
    no_job(other, 2 * VISIBILITY)
    if end == "drop":
        del job
        gc.collect()
    else:
        queue.close()
    again = claim(other, 3 * VISIBILITY)
    assert again.attempts == 2
    again.ack()


@pytest.mark.engine("redis", "nats")
def test_a_killed_worker_renews_nothing(make_queue: MakeQueue, queue_name: str, url: str) -> None:
    """D02: after a SIGKILL the job returns within its visibility."""
    queue = make_queue(visibility_timeout=VISIBILITY)
    queue.enqueue(b"x")
    crash_while_holding(url, queue_name, visibility_timeout=VISIBILITY, auto_renew=True)
    job = claim(queue, VISIBILITY + 1.0)
    assert job.attempts == 2
    job.ack()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["ack", "nack", "release"])
def test_the_end_of_a_renewed_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str, end: str
) -> None:
    queue = make_queue(visibility_timeout=VISIBILITY)
    queue.enqueue(b"x")
    job = _renewed(claim(queue))
    getattr(job, end)()
    assert (job.lease_lost, job.lease_remaining) == (False, 0)
    with pytest.raises(cwist_jq.Closed):
        job.renew()
    if end != "ack":
        claim(queue).ack()
    time.sleep(2 * VISIBILITY)
    assert observer.leftovers(queue_name) == []


def test_a_lost_lease_is_seen(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """D05: without a call to the server, in a job that nobody renews."""
    queue = make_queue(visibility_timeout=VISIBILITY)
    queue.enqueue(b"x")
    old = claim(queue)
    assert old.lease_lost is False
    eventually(lambda: old.lease_lost, timeout=VISIBILITY + 0.5)
    assert old.lease_remaining == 0
    with pytest.raises(cwist_jq.LeaseLost):
        old.renew()
    new = claim(queue)
    assert new.lease_lost is False
    with pytest.raises(cwist_jq.LeaseLost):
        old.ack()
    new.ack()
    assert observer.leftovers(queue_name) == []


def test_a_renewal_that_cannot_reach_the_server_tells(
    proxy: Proxy,
    proxy_url: str,
    make_queue: MakeQueue,
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """D05: the flag turns, a warning is logged, and the other worker has the job."""
    other = make_queue(visibility_timeout=VISIBILITY)
    other.enqueue(b"x")
    with cwist_jq.connect(proxy_url, operation_timeout=1.0) as conn:
        queue = conn.queue(queue_name, visibility_timeout=VISIBILITY, auto_renew=True)
        job = claim(queue)
        time.sleep(2 * VISIBILITY)
        assert job.lease_lost is False
        proxy.stall()
        eventually(lambda: job.lease_lost, timeout=4 * VISIBILITY)
        again = claim(other)
        assert again.attempts == 2
        proxy.flow()
        with caplog.at_level(logging.WARNING, "cwist_jq"):
            eventually(lambda: other.dead_count() == 0 and "renew" in caplog.text)
        again.ack()
        with pytest.raises(cwist_jq.LeaseLost):
            job.ack()
