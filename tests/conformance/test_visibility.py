"""The visibility timeout is a property of the queue, kept on the server (SPEC rule 13)."""

from __future__ import annotations

import logging
import time

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, crash_while_holding, drain, no_job
from tests.observers import Observer


def _warnings(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """What the library warned about this queue's visibility."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("cwist_jq")
        and record.levelno >= logging.WARNING
        and name in record.getMessage()
        and "visibility" in record.getMessage()
    ]


@pytest.mark.needs_server
def test_only_claims_write_it(
    make_queue: MakeQueue, observer: Observer, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S12: create, enqueue and dead_count leave it alone, before and after a worker set it."""
    producer = make_queue()
    producer.enqueue(b"x")
    assert producer.dead_count() == 0
    assert observer.visibility_ms(queue_name) is None
    worker = make_queue(visibility_timeout=0.5)
    assert observer.visibility_ms(queue_name) is None
    drain(worker, 1)
    assert observer.visibility_ms(queue_name) == 500
    producer.enqueue(b"y")
    assert make_queue().dead_count() == 0
    assert observer.visibility_ms(queue_name) == 500
    assert _warnings(caplog, queue_name) == []


@pytest.mark.needs_server
def test_a_worker_with_another_value_takes_it_over(
    make_queue: MakeQueue, observer: Observer, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S12: never a silent mix; one warning with both values."""
    first = make_queue(visibility_timeout=60)
    no_job(first)
    assert observer.visibility_ms(queue_name) == 60000
    second = make_queue(visibility_timeout=0.4)
    no_job(second)
    assert observer.visibility_ms(queue_name) == 400
    for _ in range(3):  # nobody sets it back, and nobody says it again
        no_job(first)
        no_job(second)
    assert observer.visibility_ms(queue_name) == 400
    (warning,) = _warnings(caplog, queue_name)
    assert "60000" in warning
    assert "400" in warning


@pytest.mark.needs_server
def test_the_new_value_rules_redelivery(make_queue: MakeQueue, queue_name: str, url: str) -> None:
    """S12, S13: reopened with a shorter value, a crash is noticed after the shorter time."""
    with_long = make_queue(visibility_timeout=60)
    no_job(with_long)
    with_long.close()
    queue = make_queue(visibility_timeout=0.5)
    queue.enqueue(b"x")
    crash_while_holding(url, queue_name, visibility_timeout=0.5)
    start = time.monotonic()
    job = claim(queue)
    assert time.monotonic() - start < 1.5
    assert job.attempts == 2
    job.ack()


@pytest.mark.slow
@pytest.mark.servers("pinned")
def test_other_handles_learn_it(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """Rule 13: within 5 s a handle that asked for more reckons leases with the smaller value."""
    first = make_queue(visibility_timeout=60, max_retries=1000)
    no_job(first)
    second = make_queue(visibility_timeout=0.3, max_retries=1000)
    no_job(second)
    changed = time.monotonic()
    learned = False
    while not learned:
        first.enqueue(b"x")
        old = claim(first)
        new = claim(second)
        try:
            old.ack()
        except cwist_jq.LeaseLost:
            learned = True
            new.ack()
        # Until then a late ack may remove the job: NATS does not fence.
        assert learned or time.monotonic() - changed < 5.5
    assert observer.leftovers(queue_name) == []


@pytest.mark.slow
def test_jobs_that_are_held_learn_it_too(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Rules 6 and 13: the new value holds for what is out already, on the server and here."""
    ends = ("ack", "nack", "release", "extend")
    first = make_queue(visibility_timeout=60)
    first.enqueue_many([end.encode() for end in ends])
    held = [claim(first) for _ in ends]
    second = make_queue(visibility_timeout=1.0)
    no_job(second)
    changed = time.monotonic()
    given = [claim(second) for _ in ends]
    assert [job.attempts for job in given] == [2] * len(ends)
    while time.monotonic() - changed < 5.0:
        time.sleep(0.25)
        for job in given:
            job.extend()
    for job in held:
        with pytest.raises(cwist_jq.LeaseLost):
            getattr(job, job.payload.decode())()
    for job in given:
        job.extend()
        job.ack()
    no_job(second)
    assert observer.leftovers(queue_name) == []


@pytest.mark.needs_server
@pytest.mark.parametrize("visibility", [0.25, 1.0])
def test_a_crash_is_noticed_after_the_visibility_and_not_before(
    make_queue: MakeQueue, url: str, queue_name: str, visibility: float
) -> None:
    """S13: seconds and milliseconds are not mixed up, and no back-off replaces the value."""
    queue = make_queue(visibility_timeout=visibility, retry_delay=5)
    queue.enqueue(b"x")
    start = time.monotonic()
    crash_while_holding(url, queue_name, visibility_timeout=visibility)
    job = claim(queue)
    waited = time.monotonic() - start
    assert visibility <= waited < visibility + 2.0  # the other process had to start first
    assert job.attempts == 2
    job.ack()
