"""Somebody deletes what a queue has on the server while it is in use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import blocked_claim, drain, leftovers, must_claim

_HOW = {
    "redis": ["flush", "wipe", "group"],
    "nats": ["wipe", "consumer"],
}


def _wipe(how: str, observer: Any, name: str) -> None:
    if how == "flush":
        observer.client.flushall()
    elif how == "group":
        observer.client.xgroup_destroy(observer.key(name, "s"), "cwist-jq")
    elif how == "consumer":
        observer.ask(lambda js: js.delete_consumer(observer.stream(name), "cwist-jq"))
    else:
        observer.wipe(name)


@pytest.fixture(params=["flush", "wipe", "group", "consumer"])
def how(request: pytest.FixtureRequest) -> str:
    """What is deleted: everything, the queue, or only its group or consumer."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def wipe(how: str, engine: str, observer: Any, queue_name: str) -> Callable[[], None]:
    """Deletes it; on an engine that has no such thing, the whole queue."""
    chosen = how if how in _HOW[engine] else "wipe"
    return lambda: _wipe(chosen, observer, queue_name)


@pytest.mark.servers("all")
def test_a_blocked_claim_gets_the_next_job(
    queue: Any, observer: Any, wipe: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """L09, S15: the claim was blocked while it happened; 2 s are allowed. Redis warns once."""
    claim = blocked_claim(queue, observer)
    assert "made again" not in caplog.text
    wipe()
    queue.enqueue(b"after")
    job = claim.result(2.0)
    assert caplog.text.count("made again") == int(observer.engine == "redis")
    assert job.payload == b"after"
    job.ack()
    assert leftovers(observer, queue.name) == []


@pytest.mark.slow
@pytest.mark.servers("all")
def test_what_is_enqueued_afterwards_is_all_claimed(
    queue: Any, observer: Any, wipe: Callable[[], None]
) -> None:
    """L09, L10: also what was enqueued before any claim made the group again."""
    queue.enqueue(b"before")
    must_claim(queue).ack()
    wipe()
    for number in range(10):
        queue.enqueue(b"%d" % number)
    assert drain(queue, observer) == [b"%d" % number for number in range(10)]
    assert leftovers(observer, queue.name) == []


@pytest.mark.slow
@pytest.mark.servers("all")
def test_a_claimed_job_cannot_be_acked_wrongly(
    make_queue: Callable[..., Any], observer: Any, wipe: Callable[[], None], how: str
) -> None:
    """L09, rule 6: whatever the ends report, they end in time and the queue lives."""
    queue = make_queue(visibility_timeout=0.5)
    for payload in (b"a", b"b", b"c"):
        queue.enqueue(payload)
    jobs = [must_claim(queue) for _ in range(3)]
    wipe()
    for call in (jobs[0].ack, jobs[1].nack, jobs[2].release):
        with contextlib.suppress(cwist_jq.LeaseLost, cwist_jq.OutcomeUnknown):
            call()
    assert queue.dead_count() == 0
    queue.enqueue(b"after")
    found = drain(queue, observer)
    assert found.count(b"after") == 1
    assert set(found) <= {b"a", b"b", b"c", b"after"}
    assert leftovers(observer, queue.name) == []


@pytest.mark.servers("all")
def test_an_old_handle_does_not_touch_new_jobs(
    make_queue: Callable[..., Any], observer: Any, wipe: Callable[[], None], how: str
) -> None:
    """Rule 6: after a wipe the same entry numbers may belong to other jobs."""
    queue = make_queue(visibility_timeout=5.0, max_retries=1)
    for payload in (b"a", b"b", b"c"):
        queue.enqueue(payload)
    jobs = [must_claim(queue) for _ in range(3)]
    wipe()
    fresh = make_queue(visibility_timeout=5.0)
    for number in range(6):
        fresh.enqueue(b"%d" % number)
    for call in (jobs[0].ack, jobs[1].nack, jobs[2].release):
        with contextlib.suppress(cwist_jq.LeaseLost, cwist_jq.OutcomeUnknown):
            call()
    found: set[bytes] = set()
    while len(found & {b"%d" % number for number in range(6)}) < 6:
        job = must_claim(fresh, 6.0)
        found.add(job.payload)
        job.ack()
    letters = {letter.payload for letter in observer.dead(queue.name)}
    assert letters <= {b"b"}


@pytest.mark.servers("all")
def test_a_count_of_nothing(queue: Any, wipe: Callable[[], None]) -> None:
    """L10: no dead letters is no error."""
    assert queue.dead_count() == 0
    queue.enqueue(b"x")
    must_claim(queue).ack()
    wipe()
    assert queue.dead_count() == 0
