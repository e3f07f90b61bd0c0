"""What an operator does with dead letters (SPEC rule 10)."""

from __future__ import annotations

import datetime as dt
import itertools
import time

import pytest

import cwist_jq
from cwist_jq import Item
from tests.conformance.helpers import (
    MakeQueue,
    bury,
    bytes_of,
    claim,
    crash_while_holding,
    drain,
    no_job,
)
from tests.observers import Observer, RedisObserver
from tests.waiting import PATIENCE, Background


def _items(count: int) -> list[Item]:
    """Items of three kinds in turn: type a, type b, no type."""
    kinds = itertools.cycle(["a", "b", None])
    return [Item(b"%d" % number, next(kinds)) for number in range(count)]


def _ids(letters: list[cwist_jq.DeadLetter]) -> list[str]:
    return [letter.id for letter in letters]


# ---- reading ----


def test_a_letter_says_all_about_the_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """X02: in a list without the payload, which stays on the server; alone with it."""
    queue = make_queue(consumer="worker-7", max_retries=2)
    payload = bytes_of(300_000)
    before = dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=100)
    job_id = queue.enqueue(payload, type="mäil", headers={"traceparent": "00-1"})
    claim(queue).nack()
    time.sleep(0.05)
    claim(queue).nack("no such user: ünï\n\x01")
    after = dt.datetime.now(dt.UTC) + dt.timedelta(milliseconds=100)
    (listed,) = queue.dead.page()
    read = queue.dead.read(job_id)
    for letter in (listed, read):
        assert (letter.id, letter.type, letter.size) == (job_id, "mäil", 300_000)
        assert (letter.cause, letter.reason) == ("nacked", "no such user: ünï\n\x01")
        assert (letter.attempts, letter.consumer) == (2, "worker-7")
        assert letter.first_time is not None
        assert letter.death_time is not None
        assert before <= letter.first_time < letter.death_time <= after
        assert letter.headers == {"traceparent": "00-1"}
    assert listed.payload is None
    assert read.payload == payload
    assert len(observer.dead(queue_name)) == 1


@pytest.mark.engine("redis", "nats")
def test_each_cause_of_death(
    make_queue: MakeQueue, observer: Observer, queue_name: str, url: str
) -> None:
    """X02, X03."""
    queue = make_queue(max_retries=1, visibility_timeout=0.3)
    queue.enqueue(b"")
    claim(queue).nack()
    queue.enqueue(b"rejected")
    claim(queue).nack(dead=True)
    queue.enqueue(b"crashed")
    crash_while_holding(url, queue_name, max_retries=1, visibility_timeout=0.3)
    no_job(queue, 1.0)
    wanted = ["nacked", "rejected", "lease-expired"]
    if observer.engine == "redis":
        assert isinstance(observer, RedisObserver)
        observer.client.xadd(observer.key(queue_name, "s"), {"type": "t", "load": "1"})
        no_job(queue, 0.3)
        wanted.append("malformed")
    letters = queue.dead.page(oldest_first=True)
    assert [letter.cause for letter in letters] == wanted
    payloads = [queue.dead.read(letter.id).payload for letter in letters]
    assert payloads[:3] == [b"", b"rejected", b"crashed"]
    assert [letter.reason for letter in letters][:3] == [None, None, None]


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("most", [1, 4, 1000])
def test_pages_in_either_order(queue: cwist_jq.Queue, most: int, *, oldest_first: bool) -> None:
    ids = bury(queue, *_items(13))
    found = []
    page = queue.dead.page(most, oldest_first=oldest_first)
    sizes = [len(page)]
    while page.mark is not None:
        found += _ids(page)
        page = queue.dead.page(most, oldest_first=oldest_first, after=page.mark)
        sizes.append(len(page))
    found += _ids(page)
    assert found == (ids if oldest_first else ids[::-1])
    assert max(sizes) <= most
    assert _ids(list(queue.dead)) == ids[::-1]


def test_an_empty_page(queue: cwist_jq.Queue) -> None:
    page = queue.dead.page()
    assert (list(page), page.mark) == ([], None)
    assert list(queue.dead) == []


def test_pages_of_one_type(queue: cwist_jq.Queue) -> None:
    ids = bury(queue, *_items(13))
    for kind, place in (("a", 0), ("b", 1), ("", 2)):
        wanted = ids[place::3]
        page = queue.dead.page(3, type=kind, oldest_first=True)
        found = _ids(page)
        while page.mark is not None:
            page = queue.dead.page(3, type=kind, oldest_first=True, after=page.mark)
            found += _ids(page)
        assert found == wanted
    assert list(queue.dead.page(type="c")) == []


@pytest.mark.parametrize("oldest_first", [False, True])
def test_letters_that_come_and_go_between_pages_shift_no_others(
    queue: cwist_jq.Queue, *, oldest_first: bool
) -> None:
    """None is left out, none comes twice."""
    ids = bury(queue, *_items(12))
    order = ids if oldest_first else ids[::-1]
    page = queue.dead.page(4, oldest_first=oldest_first)
    assert _ids(page) == order[:4]
    for gone in (order[0], order[3], order[5]):
        queue.dead.purge(gone)
    new = bury(queue, Item(b"new"))
    rest = _ids(page)
    while page.mark is not None:
        page = queue.dead.page(4, oldest_first=oldest_first, after=page.mark)
        rest += _ids(page)
    assert rest == [one for one in order if one != order[5]] + (new if oldest_first else [])


@pytest.mark.slow
def test_many_letters(queue: cwist_jq.Queue) -> None:
    queue.enqueue_many([b"%d" % number for number in range(2500)])
    ids = []
    for _ in range(25):
        jobs = queue.claim_many(100, 5)
        ids += [job.id for job in jobs]
        for job in jobs:
            job.nack(dead=True)
    assert queue.dead_count() == 2500
    found = _ids(list(queue.dead))
    assert len(found) == 2500
    assert set(found) == set(ids)
    assert queue.dead.read(ids[1234]).payload is not None
    assert queue.dead.purge_all() == 2500
    assert queue.dead_count() == 0


@pytest.mark.parametrize("job_id", ["1-1", "999999", "no id", "", "*", ">", "a" * 100])
def test_a_letter_that_is_not_there(queue: cwist_jq.Queue, job_id: str) -> None:
    bury(queue, Item(b"x"))
    for call in (queue.dead.read, queue.dead.requeue, queue.dead.purge):
        with pytest.raises((cwist_jq.NotFound, cwist_jq.InvalidParam)) as caught:
            call(job_id)
        if job_id[0:1].isdigit():
            assert isinstance(caught.value, (cwist_jq.NotFound, LookupError))
    assert queue.dead_count() == 1


@pytest.mark.parametrize("mark", ["", "nonsense", "-1", "1:2:3:4:5", "x" * 300])
def test_a_mark_that_is_none_is_refused(queue: cwist_jq.Queue, mark: str) -> None:
    bury(queue, Item(b"x"))
    with pytest.raises(cwist_jq.InvalidParam):
        queue.dead.page(after=mark)


# ---- moving back ----


def test_a_requeued_job_begins_again(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """X04, rule 12: the same id, all attempts; the letter is gone."""
    queue = make_queue(max_retries=2)
    job_id = queue.enqueue(b"\x00x", type="t", headers={"A": "1"})
    for _ in range(3):
        for attempt in (1, 2):
            job = claim(queue)
            assert (job.id, job.type, job.payload) == (job_id, "t", b"\x00x")
            assert (job.attempts, dict(job.headers)) == (attempt, {"A": "1"})
            job.nack()
        assert queue.dead_count() == 1
        queue.dead.requeue(job_id)
        assert queue.dead_count() == 0
        with pytest.raises(cwist_jq.NotFound):
            queue.dead.requeue(job_id)
    job = claim(queue)
    assert (job.id, job.attempts) == (job_id, 1)
    job.ack()
    no_job(queue)
    assert observer.leftovers(queue_name) == []


def test_a_requeued_job_survives_a_crash_and_a_release(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """T06: no window of the server swallows what is published again."""
    queue = make_queue(max_retries=3, visibility_timeout=0.4)
    (job_id,) = bury(queue, Item(b"x"))
    queue.dead.requeue(job_id)
    old = claim(queue)
    new = claim(queue)
    assert (old.attempts, new.attempts) == (1, 2)
    new.release()
    again = claim(queue)
    assert (again.id, again.attempts) == (job_id, 2)
    again.nack("dead again", dead=True)
    assert queue.dead.read(job_id).attempts == 2
    queue.dead.requeue(job_id)
    assert [job.id for job in drain(queue, 1)] == [job_id]
    assert observer.leftovers(queue_name) == []


def test_all_are_requeued_in_their_order(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    ids = bury(queue, *_items(30))
    assert queue.dead.requeue_all() == 30
    assert queue.dead_count() == 0
    jobs = drain(queue, 30)
    assert [job.id for job in jobs] == ids
    assert {job.attempts for job in jobs} == {1}
    assert queue.dead.requeue_all() == 0
    assert observer.leftovers(queue_name) == []


def test_those_of_one_type_are_requeued(queue: cwist_jq.Queue) -> None:
    ids = bury(queue, *_items(9))
    assert queue.dead.requeue_all("b") == 3
    assert [job.id for job in drain(queue, 3)] == ids[1::3]
    assert queue.dead.requeue_all("") == 3
    assert [job.id for job in drain(queue, 3)] == ids[2::3]
    assert _ids(queue.dead.page(oldest_first=True)) == ids[0::3]
    assert queue.dead.requeue_all("none of these") == 0


@pytest.mark.parametrize("call", ["requeue_all", "requeue"])
def test_two_operators_never_double_a_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str, call: str
) -> None:
    """X05: each job is moved once, and the counts add up."""
    first, second = make_queue(), make_queue()
    ids = bury(first, *_items(100))

    def work(queue: cwist_jq.Queue) -> int:
        if call == "requeue_all":
            return queue.dead.requeue_all()
        moved = 0
        for job_id in ids:
            try:
                queue.dead.requeue(job_id)
                moved += 1
            except cwist_jq.NotFound:
                continue
        return moved

    operators = [Background(work, first), Background(work, second)]
    assert sum(one.result(3 * PATIENCE) for one in operators) == 100
    assert first.dead_count() == 0
    assert sorted(job.id for job in drain(first, 100)) == sorted(ids)
    assert observer.leftovers(queue_name) == []


def test_jobs_that_die_again_do_not_keep_a_requeue_busy(make_queue: MakeQueue) -> None:
    """Those that are there now: a worker that rejects everything does not make it endless."""
    queue, other = make_queue(), make_queue()
    bury(queue, *_items(50))
    stop: list[bool] = []

    def reject() -> int:
        count = 0
        while not stop:
            job = other.claim(0.2)
            if job is not None:
                job.nack(dead=True)
                count += 1
        return count

    worker = Background(reject)
    moved = Background(queue.dead.requeue_all)
    assert moved.result(2 * PATIENCE) >= 50
    while queue.stats().ready + queue.stats().claimed:
        time.sleep(0.05)
    stop.append(True)
    assert worker.result() >= 50
    assert queue.dead_count() == 50


# ---- purging ----


def test_one_is_purged(queue: cwist_jq.Queue, observer: Observer, queue_name: str) -> None:
    ids = bury(queue, *_items(3))
    queue.dead.purge(ids[1])
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.purge(ids[1])
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.read(ids[1])
    assert _ids(queue.dead.page()) == [ids[2], ids[0]]
    assert queue.dead.purge_all() == 2
    assert observer.leftovers(queue_name) == []


def test_those_of_one_type_are_purged(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    ids = bury(queue, *_items(9))
    assert queue.dead.purge_all("a") == 3
    assert queue.dead.purge_all("") == 3
    assert _ids(queue.dead.page(oldest_first=True)) == ids[1::3]
    assert queue.dead.purge_all("b", older_than=3600) == 0
    assert queue.dead.purge_all() == 3
    assert observer.leftovers(queue_name) == []


def test_the_older_ones_are_purged(queue: cwist_jq.Queue) -> None:
    """T03: by the server's clock, and by the time of death."""
    old = bury(queue, *_items(3))
    time.sleep(1.2)
    new = bury(queue, *_items(2))
    assert queue.dead.purge_all(older_than=60) == 0
    assert _ids(queue.dead.page(oldest_first=True)) == old + new
    assert queue.dead.purge_all(older_than=dt.timedelta(seconds=1)) == 3
    assert _ids(queue.dead.page(oldest_first=True)) == new
