"""Unique jobs: one live job for each key, freed on ack, death and purge."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import cwist_jq
from cwist_jq import DuplicateId, Item
from tests.conformance.helpers import (
    MakeQueue,
    claim,
    delays,
    drain,
    give_away,
    is_at_least,
    no_job,
)
from tests.observers import Observer
from tests.waiting import Background

KEY = "user-7"


def _store(queue: cwist_jq.Queue, payload: bytes = b"x", delay: float = 0) -> str:
    """Stores a job with the key, which must be free."""
    job_id = queue.enqueue(payload, dedupe_key=KEY, delay=delay)
    assert not isinstance(job_id, DuplicateId), "the key is taken"
    return job_id


def _is_taken(queue: cwist_jq.Queue, first: str) -> None:
    """The key is taken, by that job, and the attempt stores nothing."""
    again = queue.enqueue(b"another", dedupe_key=KEY)
    assert isinstance(again, DuplicateId)
    assert again == first


def test_a_second_job_with_the_key_is_told_who_the_first_is(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """T05: in each state of the first; nothing is stored; free at once after the ack (T06)."""
    first = _store(queue)
    _is_taken(queue, first)
    assert observer.ready_and_claimed(queue_name) == 1
    job = claim(queue)
    assert (job.id, job.payload) == (first, b"x")
    _is_taken(queue, first)
    assert observer.ready_and_claimed(queue_name) == 1
    job.ack()
    assert observer.leftovers(queue_name) == []
    second = _store(queue, b"second")
    assert second != first
    assert [job.payload for job in drain(queue, 1)] == [b"second"]
    assert observer.leftovers(queue_name) == []


MOVES: dict[str, Callable[[cwist_jq.Job], None]] = {
    "retry": lambda job: job.nack(),
    "retry later": lambda job: job.nack(delay=0.2),
    "release": lambda job: job.release(),
    "put off": lambda job: job.release(0.2),
}


@pytest.mark.parametrize("move", MOVES)
def test_the_key_stays_with_the_job(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, move: str
) -> None:
    """T07: while it waits, when it is ready again, and when it is claimed again."""
    if move == "put off" and not delays(queue, observer):
        return
    first = _store(queue)
    for _ in range(2):
        MOVES[move](claim(queue))
        _is_taken(queue, first)
    job = claim(queue)
    assert job.id == first
    _is_taken(queue, first)
    job.ack()
    no_job(queue)
    assert observer.leftovers(queue_name) == []
    _store(queue)


def test_the_key_stays_when_a_lease_runs_out(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(visibility_timeout=0.4)
    first = _store(queue)
    old, new = give_away(queue)
    _is_taken(queue, first)
    with pytest.raises(cwist_jq.LeaseLost):
        old.ack()
    _is_taken(queue, first)
    new.ack()
    assert observer.leftovers(queue_name) == []
    _store(queue)


def test_a_unique_job_that_waits_is_delivered_once(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """T07: its own key is no duplicate at its due time."""
    if not delays(queue, observer):
        return
    first = _store(queue, delay=0.6)
    _is_taken(queue, first)
    again = queue.enqueue(b"also late", dedupe_key=KEY, delay=0.1)
    assert isinstance(again, DuplicateId)
    assert again == first
    no_job(queue, 0.3)
    job = claim(queue)
    assert (job.id, job.payload, job.attempts) == (first, b"x", 1)
    _is_taken(queue, first)
    late = queue.enqueue(b"late", dedupe_key=KEY, delay=5)
    assert isinstance(late, DuplicateId)
    job.ack()
    no_job(queue, 0.3)
    assert observer.leftovers(queue_name) == []


def _lapse(queue: cwist_jq.Queue) -> None:
    claim(queue)
    no_job(queue, 1.0)


DEATHS: dict[str, Callable[[cwist_jq.Queue], None]] = {
    "nacked": lambda queue: claim(queue).nack(),
    "rejected": lambda queue: claim(queue).nack(dead=True),
    "lease-expired": _lapse,
}


@pytest.mark.parametrize("death", DEATHS)
def test_death_frees_the_key(
    make_queue: MakeQueue, observer: Observer, queue_name: str, death: str
) -> None:
    """T05: a key outlives no job; a job that comes back from the dead has none."""
    queue = make_queue(max_retries=1, visibility_timeout=0.4)
    first = _store(queue, b"old")
    DEATHS[death](queue)
    assert queue.dead_count() == 1
    second = _store(queue, b"new")
    assert second != first
    queue.dead.requeue(first)
    _is_taken(queue, second)
    jobs = drain(queue, 2)
    assert sorted(job.payload for job in jobs) == [b"new", b"old"]
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("delay", [0, 30])
def test_purge_frees_the_key(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, delay: float
) -> None:
    """T05."""
    if delay and not delays(queue, observer):
        return
    _store(queue, delay=delay)
    assert queue.purge() == 1
    assert observer.leftovers(queue_name) == []
    _store(queue)
    drain(queue, 1)


@pytest.mark.parametrize("how", ["ack_many", "ack_and_claim"])
def test_acks_in_batches_free_keys(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, how: str
) -> None:
    items = [Item(b"%d" % number, dedupe_key=f"k{number}") for number in range(20)]
    first = queue.enqueue_many([b"plain", *items])
    assert not any(isinstance(one, DuplicateId) for one in first)
    jobs = queue.claim_many(100, 5)
    assert len(jobs) == 21
    if how == "ack_many":
        queue.ack_many(jobs)
    else:
        assert queue.ack_and_claim(jobs, 10, 0) == []
    assert observer.leftovers(queue_name) == []
    again = queue.enqueue_many(items)
    assert not any(isinstance(one, DuplicateId) for one in again)
    queue.purge()


def test_duplicates_in_a_batch(queue: cwist_jq.Queue, observer: Observer, queue_name: str) -> None:
    """B01: each item has its own result; a duplicate is none that failed."""
    first = _store(queue, b"first")
    ids = queue.enqueue_many(
        [
            Item(b"no", dedupe_key=KEY),
            b"plain",
            Item(b"new", "t", dedupe_key="k2"),
            Item(b"again", "t", dedupe_key="k2"),
        ]
    )
    assert [isinstance(one, DuplicateId) for one in ids] == [True, False, False, True]
    assert ids[0] == first
    assert ids[3] == ids[2]
    assert [job.payload for job in drain(queue, 3)] == [b"first", b"plain", b"new"]
    assert observer.leftovers(queue_name) == []


def test_duplicates_among_all_or_none(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    if not is_at_least(observer, 2, 12):
        return
    first = _store(queue, b"first")
    ids = queue.enqueue_all(
        [b"plain", Item(b"no", dedupe_key=KEY), Item(b"new", dedupe_key="k2"), b"last"]
    )
    assert [isinstance(one, DuplicateId) for one in ids] == [False, True, False, False]
    assert ids[1] == first
    payloads = [job.payload for job in drain(queue, 4)]
    assert payloads == [b"first", b"plain", b"new", b"last"]
    assert observer.leftovers(queue_name) == []


def test_keys_that_look_alike_are_different(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """Whatever the key is made of; the longest one, too."""
    keys = ["a", "A", "a b", "a.b", "a*", "a>", "*", ">", ".", "=41", "ü", "u\u0308", "日本"]
    keys += ["a=b", "a/b", "-", "_", "a:b", "k" * 255, "k" * 254, "é" * 127, "%", '"', "\\", "$JS"]
    ids = queue.enqueue_many([Item(key.encode(), dedupe_key=key) for key in keys])
    assert len(set(ids)) == len(keys)
    assert not any(isinstance(one, DuplicateId) for one in ids)
    for key, first in zip(keys, ids, strict=True):
        again = queue.enqueue(b"", dedupe_key=key)
        assert isinstance(again, DuplicateId)
        assert again == first
    assert [job.payload.decode() for job in drain(queue, len(keys))] == keys
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("key", ["", "k" * 256, "é" * 128, "a\nb", "a\x7fb", "\x00"])
def test_a_wrong_key_is_refused(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, key: str
) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match="dedupe_key"):
        queue.enqueue(b"x", dedupe_key=key)
    with pytest.raises(cwist_jq.InvalidParam, match=r"items\[1\].*dedupe_key"):
        queue.enqueue_many([b"plain", Item(b"x", dedupe_key=key)])
    assert observer.ready_and_claimed(queue_name) == 0


def test_one_of_many_wins(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """T05: sixteen producers at the same moment."""
    barrier = threading.Barrier(16)

    def produce(queue: cwist_jq.Queue) -> str:
        barrier.wait()
        return queue.enqueue(b"x", dedupe_key=KEY)

    producers = [Background(produce, make_queue()) for _ in range(16)]
    ids = [producer.result() for producer in producers]
    assert sum(not isinstance(one, DuplicateId) for one in ids) == 1
    assert len(set(ids)) == 1
    drain(make_queue(), 1)
    assert observer.leftovers(queue_name) == []


def test_a_wiped_queue_holds_no_key(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """T05: an operator deleted everything."""
    _store(queue)
    observer.wipe(queue_name)
    _store(queue)
    drain(queue, 1)
    assert observer.leftovers(queue_name) == []


def test_queues_have_keys_of_their_own(make_queue: MakeQueue, queue_name: str) -> None:
    first, second = make_queue(), make_queue(name=f"{queue_name}-b")
    _store(first)
    _store(second)
    drain(first, 1)
    drain(second, 1)


def test_a_released_job_with_a_key_is_the_same_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Attempts, id, type and headers stay, and so does the key, however often it is handed back."""
    queue = make_queue(max_retries=3)
    first = queue.enqueue(b"x", type="t", dedupe_key=KEY, headers={"A": "1"})
    claim(queue).nack()
    for _ in range(5):
        job = claim(queue)
        assert (job.id, job.type, job.attempts, dict(job.headers)) == (first, "t", 2, {"A": "1"})
        job.release()
        _is_taken(queue, first)
    claim(queue).ack()
    assert observer.leftovers(queue_name) == []
