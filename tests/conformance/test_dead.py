"""Dead letters: when a job dies, and what is kept of it (SPEC rules 4, 5, 10)."""

from __future__ import annotations

import time

import pytest

import cwist_jq
from tests.conformance.helpers import (
    MakeQueue,
    claim,
    crash_while_holding,
    no_job,
    only_letter,
    worker_process,
)
from tests.observers import DeadLetter, Observer
from tests.waiting import eventually


def _times_fit(letter: DeadLetter, began: float, died: float) -> None:
    """First and last time by the server's clock, which is this machine's."""
    slack = 100
    assert began * 1000 - slack <= letter.first_ms <= letter.last_ms
    assert died * 1000 - slack <= letter.last_ms <= time.time() * 1000 + slack


def test_the_last_nack_moves_the_job_to_the_dead_letters(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """X02: at that nack, not at a later claim; everything about the job is kept."""
    queue = make_queue(max_retries=2, consumer="worker-7")
    began = time.time()
    job_id = queue.enqueue(b"\x00poison\xff", type="mail")
    claim(queue).nack("first try")
    assert observer.dead(queue_name) == []
    assert queue.dead_count() == 0
    job = claim(queue)
    died = time.time()
    job.nack("no such user: ünï")
    letter = only_letter(observer, queue_name)
    assert (letter.id, letter.type, letter.payload) == (job_id, "mail", b"\x00poison\xff")
    assert (letter.attempts, letter.cause, letter.reason) == (2, "nacked", "no such user: ünï")
    assert letter.consumer == "worker-7"
    assert letter.others == {}
    _times_fit(letter, began, died)
    assert queue.dead_count() == 1
    assert observer.ready_and_claimed(queue_name) == 0
    assert observer.claimed(queue_name) == 0
    no_job(queue)


def test_a_single_allowed_delivery_dies_at_its_first_nack(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """N05."""
    queue = make_queue(max_retries=1)
    queue.enqueue(b"once")
    claim(queue).nack()
    letter = only_letter(observer, queue_name)
    assert (letter.attempts, letter.cause, letter.reason) == (1, "nacked", None)
    assert (letter.payload, letter.type) == (b"once", None)


def test_a_single_allowed_delivery_that_is_handed_back_lives(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """N05: a polite end of the worker releases, which spends no attempt."""
    queue = make_queue(max_retries=1)
    queue.enqueue(b"innocent")
    claim(queue).release()
    job = claim(queue)
    assert job.attempts == 1
    job.ack()
    assert observer.dead(queue_name) == []


@pytest.mark.needs_server
def test_a_single_allowed_delivery_that_crashed_says_lease_expired(
    make_queue: MakeQueue, observer: Observer, queue_name: str, url: str
) -> None:
    """N05: the letter says that the lease ran out, not that the job failed."""
    queue = make_queue(max_retries=1, visibility_timeout=0.3)
    queue.enqueue(b"crasher")
    crash_while_holding(url, queue_name, max_retries=1, visibility_timeout=0.3)
    no_job(queue, timeout=1.0)
    letter = only_letter(observer, queue_name)
    assert (letter.attempts, letter.cause) == (1, "lease-expired")


@pytest.mark.needs_server
def test_three_killed_workers_end_in_a_dead_letter(
    make_queue: MakeQueue, observer: Observer, queue_name: str, url: str
) -> None:
    """L08, X01, X02: nobody ever nacks; the next claim by anyone moves the job."""
    queue = make_queue(max_retries=3, visibility_timeout=0.3)
    began = time.time()
    job_id = queue.enqueue(b"crasher", type="t")
    for number in range(3):
        options = {"max_retries": 3, "visibility_timeout": 0.3, "consumer": f"victim-{number}"}
        assert crash_while_holding(url, queue_name, **options) == job_id
        assert observer.dead(queue_name) == []
    died = time.time()
    no_job(queue, timeout=1.0)
    letter = only_letter(observer, queue_name)
    assert (letter.id, letter.type, letter.payload) == (job_id, "t", b"crasher")
    assert (letter.attempts, letter.cause) == (3, "lease-expired")
    if observer.engine == "redis":
        assert letter.consumer == "victim-2"
    _times_fit(letter, began, died)
    assert queue.dead_count() == 1
    assert observer.ready_and_claimed(queue_name) == 0


def test_dropped_handles_end_in_a_dead_letter(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """L08: a handle that is dropped is a lease that runs out."""
    queue = make_queue(max_retries=2, visibility_timeout=0.4, consumer="dropper")
    queue.enqueue(b"dropped")
    for attempt in (1, 2):
        assert claim(queue).attempts == attempt
    no_job(queue, timeout=0.8)
    letter = only_letter(observer, queue_name)
    assert (letter.attempts, letter.cause, letter.payload) == (2, "lease-expired", b"dropped")
    # NATS does not know who let a lease run out.
    assert letter.consumer == (None if observer.engine == "nats" else "dropper")


def test_a_blocked_claim_moves_the_dead_out_of_the_way(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """L04, L08: the claim that buries a job goes on and takes the next one."""
    queue = make_queue(max_retries=1, visibility_timeout=0.3)
    for number in range(5):
        queue.enqueue(b"%d" % number)
    held = [claim(queue) for _ in range(5)]
    assert len(held) == 5
    eventually(lambda: queue.claim(0.1) is None and len(observer.dead(queue_name)) == 5)
    queue.enqueue(b"next")
    assert claim(queue).payload == b"next"


@pytest.mark.needs_server
def test_poison_dies_and_the_others_are_done(
    make_queue: MakeQueue, observer: Observer, queue_name: str, url: str
) -> None:
    """X01: one payload kills its worker; a supervisor restarts workers until all is done."""
    queue = make_queue(max_retries=3, visibility_timeout=0.3)
    for number in range(10):
        queue.enqueue(b"%d" % number)
    queue.enqueue(b"poison")
    for number in range(10, 20):
        queue.enqueue(b"%d" % number)
    done, crashes = [], 0
    while True:
        options = {"max_retries": 3, "visibility_timeout": 0.3}
        with worker_process(url, queue_name, then="poison", **options) as process:
            said, _ = process.communicate(timeout=20)
            done += said.split()
        if process.returncode == 0:
            break
        assert process.returncode == -9
        crashes += 1
    assert crashes == 3
    assert sorted(map(int, done)) == list(range(20))
    letter = only_letter(observer, queue_name)
    assert (letter.payload, letter.attempts, letter.cause) == (b"poison", 3, "lease-expired")
    assert observer.ready_and_claimed(queue_name) == 0


@pytest.mark.parametrize(
    "reason",
    ["", "x" * 4096, "ü" * 2048, "two\nlines\tand 100% \x01", "%41 = + &", " spaced "],
    ids=["empty", "longest", "longest-utf8", "control", "percent", "spaces"],
)
def test_the_reason_is_kept_to_the_letter(
    make_queue: MakeQueue, observer: Observer, queue_name: str, reason: str
) -> None:
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    claim(queue).nack(reason)
    assert only_letter(observer, queue_name).reason == (reason or None)


def test_a_reason_that_is_too_long_leaves_the_job_claimed(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    job = claim(queue)
    for reason in ("x" * 4097, "ü" * 2049, "nul\0", "\ud800"):
        with pytest.raises(cwist_jq.InvalidParam, match="reason"):
            job.nack(reason)
    assert observer.dead(queue_name) == []
    job.nack("short")
    assert only_letter(observer, queue_name).reason == "short"


def test_equal_jobs_have_letters_of_their_own(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    ids = [queue.enqueue(b"same", type="same") for _ in range(5)]
    for job in [claim(queue) for _ in range(5)]:
        job.nack("same")
    assert [letter.id for letter in observer.dead(queue_name)] == ids
    assert queue.dead_count() == 5
    assert observer.ready_and_claimed(queue_name) == 0
