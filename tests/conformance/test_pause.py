"""Pause: claims wait on, everything else goes on."""

from __future__ import annotations

import time

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, is_at_least, no_job
from tests.observers import Observer
from tests.waiting import Background


def _pauses(queue: cwist_jq.Queue, observer: Observer) -> bool:
    """Pauses, where the server can; one that cannot says so."""
    if is_at_least(observer, 2, 11):
        queue.pause()
        return True
    for call in (queue.pause, queue.resume):
        with pytest.raises(cwist_jq.Unsupported, match=r"2\.11"):
            call()
    assert queue.stats().paused is False
    return False


def test_a_paused_queue_gives_nothing(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """By anyone, until anyone resumes it."""
    queue, other = make_queue(), make_queue()
    queue.enqueue(b"x")
    if not _pauses(queue, observer):
        return
    assert other.stats().paused is True
    for one in (queue, other, make_queue()):
        no_job(one)
        assert one.claim_many(10, 0.2) == []
    queue.enqueue(b"y")
    assert queue.stats().ready == 2
    other.resume()
    assert queue.stats().paused is False
    assert [job.payload for job in drain(queue, 2)] == [b"x", b"y"]
    assert observer.leftovers(queue_name) == []


def test_claimed_jobs_are_not_touched(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_retries=2)
    queue.enqueue_many([b"ack", b"nack", b"release", b"bury"])
    jobs = queue.claim_many(4, 5)
    if not _pauses(queue, observer):
        return
    jobs[0].extend()
    jobs[0].ack()
    jobs[1].nack()
    jobs[2].release()
    jobs[3].nack(dead=True)
    no_job(queue, 0.3)
    queue.resume()
    seen = sorted((job.payload, job.attempts) for job in drain(queue, 2))
    assert seen == [(b"nack", 2), (b"release", 1)]
    assert queue.dead_count() == 1


@pytest.mark.slow
def test_a_blocked_claim_waits_on(make_queue: MakeQueue, observer: Observer) -> None:
    """Within a second it brings nothing more; after the resumption it goes on by itself."""
    queue, worker = make_queue(), make_queue()
    no_job(worker)
    waiting = Background(worker.claim, 30.0)
    time.sleep(0.2)
    if not _pauses(queue, observer):
        queue.enqueue(b"x")
        waiting.result()
        return
    time.sleep(1.1)
    queue.enqueue(b"x")
    time.sleep(1.2)
    assert waiting.running
    assert queue.stats().ready == 1
    queue.resume()
    job = waiting.result()
    assert job is not None
    assert job.attempts == 1
    job.ack()


def test_a_claim_of_a_paused_queue_ends_with_its_timeout(
    queue: cwist_jq.Queue, observer: Observer
) -> None:
    queue.enqueue(b"x")
    if _pauses(queue, observer):
        start = time.monotonic()
        no_job(queue, 0.7)
        assert 0.65 < time.monotonic() - start < 1.7
        queue.resume()
        drain(queue, 1)


def test_pausing_twice_is_pausing_once(queue: cwist_jq.Queue, observer: Observer) -> None:
    if _pauses(queue, observer):
        queue.pause()
        queue.resume()
        queue.resume()
        queue.enqueue(b"x")
        drain(queue, 1)


def test_nothing_is_spent_at_the_moment_of_a_pause(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Rule 14: what arrives meanwhile is released."""
    queue, worker = make_queue(), make_queue(max_retries=1)
    if not _pauses(queue, observer):
        return
    queue.resume()
    for _ in range(5):
        waiting = Background(worker.claim, 30.0)
        time.sleep(0.05)
        pausing = Background(queue.pause)
        queue.enqueue(b"x")
        pausing.result()
        time.sleep(0.05)
        queue.resume()
        job = waiting.result()
        assert job is not None
        assert job.attempts == 1
        job.ack()
    assert queue.dead_count() == 0
    assert observer.leftovers(queue_name) == []


def test_workers_that_start_later_wait_too(make_queue: MakeQueue, observer: Observer) -> None:
    """It is kept on the server: no handle need have been there."""
    queue = make_queue()
    queue.enqueue(b"x")
    if not _pauses(queue, observer):
        return
    queue.close()
    worker = make_queue()
    no_job(worker, 0.3)
    worker.resume()
    claim(worker).ack()
