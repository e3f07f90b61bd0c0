"""How long a nacked job waits, and which go to the dead letters at once."""

from __future__ import annotations

import itertools
import time

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, no_job, only_letter
from tests.observers import Observer

LATE = 0.6


def _gaps(queue: cwist_jq.Queue, deliveries: int) -> list[float]:
    """Nacks a job again and again; the time from each nack to the next delivery."""
    gaps = []
    claim(queue).nack()
    for attempt in range(2, deliveries + 1):
        start = time.monotonic()
        job = claim(queue)
        gaps.append(time.monotonic() - start)
        assert job.attempts == attempt
        job.nack()
    return gaps


def test_delays_double_up_to_the_cap(make_queue: MakeQueue) -> None:
    """S14."""
    queue = make_queue(
        max_retries=6, retry_delay=0.2, retry_backoff="exponential", retry_delay_max=0.5
    )
    queue.enqueue(b"x")
    for gap, wanted in zip(_gaps(queue, 5), (0.2, 0.4, 0.5, 0.5), strict=True):
        assert wanted - 0.05 < gap < wanted + LATE


def test_a_fixed_delay_stays(make_queue: MakeQueue) -> None:
    queue = make_queue(max_retries=5, retry_delay=0.2, retry_backoff="fixed")
    queue.enqueue(b"x")
    assert all(0.15 < gap < 0.2 + LATE for gap in _gaps(queue, 4))


@pytest.mark.slow
def test_jitter_spreads_what_failed_together(make_queue: MakeQueue) -> None:
    """T02: up to the share is taken off, never more, and nothing is added."""
    queue = make_queue(retry_delay=2.0, retry_jitter=0.75)
    queue.enqueue_many([b"%d" % number for number in range(40)])
    jobs = queue.claim_many(40, 5)
    assert len(jobs) == 40
    start = time.monotonic()
    queue.nack_many(jobs)
    moments: list[float] = []
    while len(moments) < 40:
        queue.ack_many([claim(queue)])
        moments.append(time.monotonic() - start)
    assert moments[0] > 0.45
    assert moments[-1] < 2.0 + LATE
    assert moments[9] < 1.6
    assert moments[-1] - moments[0] > 0.8


def test_every_job_of_a_batch_waits_by_its_own_attempts(make_queue: MakeQueue) -> None:
    queue = make_queue(retry_delay=0.3, retry_backoff="exponential")
    old_id = queue.enqueue(b"old")
    claim(queue).nack(delay=0)
    new_id = queue.enqueue(b"new")
    jobs = sorted(
        itertools.chain(queue.claim_many(1, 5), queue.claim_many(1, 5)), key=lambda j: j.attempts
    )
    assert [(job.id, job.attempts) for job in jobs] == [(new_id, 1), (old_id, 2)]
    start = time.monotonic()
    queue.nack_many(jobs)
    first = claim(queue)
    assert (first.id, first.attempts) == (new_id, 2)
    assert 0.25 < time.monotonic() - start < 0.6
    second = claim(queue)
    assert (second.id, second.attempts) == (old_id, 3)
    assert 0.55 < time.monotonic() - start < 0.6 + LATE
    queue.ack_many([first, second])


@pytest.mark.parametrize(("policy", "own"), [(5.0, 0), (0, 0.5), (5.0, 0.5)])
def test_a_nack_may_have_a_delay_of_its_own(
    make_queue: MakeQueue, observer: Observer, queue_name: str, policy: float, own: float
) -> None:
    queue = make_queue(retry_delay=policy)
    queue.enqueue(b"x")
    claim(queue).nack("not now", delay=own)
    start = time.monotonic()
    if own:
        no_job(queue)
    job = claim(queue, own + LATE)
    assert time.monotonic() - start > own - 0.05
    assert job.attempts == 2
    job.ack()
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("max_retries", [1, 5])
def test_a_rejected_job_is_dead_at_once(
    make_queue: MakeQueue, observer: Observer, queue_name: str, max_retries: int
) -> None:
    """X02: the cause says that it was not tried again on purpose."""
    queue = make_queue(max_retries=max_retries, retry_delay=0.1)
    job_id = queue.enqueue(b"\x00bad", type="t")
    claim(queue).nack("bad address", dead=True)
    letter = only_letter(observer, queue_name)
    assert (letter.id, letter.type, letter.payload) == (job_id, "t", b"\x00bad")
    assert (letter.cause, letter.reason, letter.attempts) == ("rejected", "bad address", 1)
    no_job(queue, 0.3)
    assert observer.ready_and_claimed(queue_name) == 0


def test_the_last_delivery_is_the_last_whatever_the_delay(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    claim(queue).nack("too often", delay=30)
    letter = only_letter(observer, queue_name)
    assert (letter.cause, letter.reason) == ("nacked", "too often")
    assert observer.ready_and_claimed(queue_name) == 0


def test_a_late_rejection_changes_nothing(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D04: the job belongs to somebody else."""
    queue = make_queue(visibility_timeout=0.4)
    queue.enqueue(b"x")
    old = claim(queue)
    new = claim(queue)
    with pytest.raises(cwist_jq.LeaseLost):
        old.nack(dead=True)
    assert observer.dead(queue_name) == []
    new.ack()
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"retry_backoff": "linear"},
        {"retry_backoff": None},
        {"retry_delay": 2, "retry_delay_max": 1},
        {"retry_delay_max": 0},
        {"retry_delay_max": 366 * 86_400},
        {"retry_jitter": 1.5},
        {"retry_jitter": "0.1"},
        {"max_length": 0},
        {"max_length": 1_000_000_001},
        {"auto_renew": 1},
    ],
)
def test_wrong_options_of_a_queue_are_named(
    make_queue: MakeQueue, wrong: dict[str, object]
) -> None:
    field = list(wrong)[-1]
    with pytest.raises(cwist_jq.InvalidParam, match=f"{field} is .*allowed"):
        make_queue(**wrong)


def test_a_delay_above_the_default_cap_is_no_mistake(make_queue: MakeQueue) -> None:
    make_queue(retry_delay=7200)
    make_queue(retry_delay=7200, retry_backoff="exponential")
