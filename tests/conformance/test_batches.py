"""Batches: many jobs in one call, a result for each, and what they leave on the server."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, bytes_of, claim, digest, drain, no_job
from tests.fault.support import blocked_claim
from tests.observers import NatsObserver, Observer, RedisObserver
from tests.waiting import PATIENCE, Background, eventually

MIB = 1024 * 1024
#: The largest payload that a NATS server of the default set-up takes.
NATS_LIMIT = MIB - 16384
#: How many jobs one claim may ask for.
MOST = 1000


def gather(queue: cwist_jq.Queue, count: int) -> list[cwist_jq.Job]:
    """Claims exactly that many jobs, in as many calls as it takes."""
    jobs: list[cwist_jq.Job] = []
    while len(jobs) < count:
        more = queue.claim_many(min(count - len(jobs), MOST), timeout=PATIENCE)
        assert more, f"{len(jobs)} of {count} jobs came"
        jobs += more
    return jobs


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Payloads that say where they stand."""
    return [b"%d" % number for number in range(first, first + count)]


def payloads(jobs: list[cwist_jq.Job]) -> list[bytes]:
    """The payloads of jobs, in order."""
    return [job.payload for job in jobs]


@contextmanager
def failing(*kinds: type[cwist_jq.Error] | None) -> Iterator[list[Any]]:
    """The call fails, with these results for its items (None: success); yields the results."""
    found: list[Any] = []
    first = next(kind for kind in kinds if kind not in (None, cwist_jq.NotSent))
    assert first is not None
    with pytest.raises(first) as caught:
        yield found
    assert caught.value.results is not None
    found += caught.value.results
    assert [type(one) if isinstance(one, cwist_jq.Error) else None for one in found] == list(kinds)


# ---- enqueue ----


def test_ids_types_and_order(queue: cwist_jq.Queue, observer: Observer, queue_name: str) -> None:
    """P01: all kinds of payloads and types in one call."""
    kinds: list[str | None] = ["größe", "日本語", "🎉🎊", "é" * 127, None, "a b:c/d"]
    items: list[Any] = [cwist_jq.Item(b"%d" % at, type=kind) for at, kind in enumerate(kinds)]
    items += [b"", bytearray(b"array"), memoryview(b"view"), cwist_jq.Item(b"", type="x")]
    ids = queue.enqueue_many(items, type="common")
    assert len(set(ids)) == len(ids) == len(items)
    assert observer.ready_and_claimed(queue_name) == len(items)
    jobs = gather(queue, len(items))
    assert [job.id for job in jobs] == ids
    assert payloads(jobs) == [*numbered(6), b"", b"array", b"view", b""]
    wanted = [kind or "common" for kind in kinds]
    assert [job.type for job in jobs] == [*wanted, "common", "common", "common", "x"]
    assert {job.attempts for job in jobs} == {1}
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("make", [list, tuple, iter], ids=lambda make: make.__name__)
def test_any_iterable_will_do(queue: cwist_jq.Queue, make: Callable[[Any], Any]) -> None:
    ids = queue.enqueue_many(make(numbered(5)))
    jobs = gather(queue, 5)
    assert [job.id for job in jobs] == ids
    queue.nack_many(make(jobs))
    jobs = gather(queue, 5)
    queue.release_many(make(jobs))
    jobs = gather(queue, 5)
    assert {job.attempts for job in jobs} == {2}
    queue.ack_many(make(jobs))
    no_job(queue)


def test_nothing_is_no_error(queue: cwist_jq.Queue, observer: Observer, queue_name: str) -> None:
    assert queue.enqueue_many([]) == queue.enqueue_all([]) == []
    queue.ack_many([])
    queue.nack_many([])
    queue.release_many([])
    assert queue.claim_many(10, timeout=0) == []
    assert queue.ack_and_claim([], 10, timeout=0) == []
    assert observer.leftovers(queue_name) == []


def test_single_calls_batches_and_other_clients_mix(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    queue.enqueue(b"0")
    queue.enqueue_many(numbered(3, 1))
    observer.put(queue_name, b"4", "foreign")
    queue.enqueue_many(numbered(2, 5))
    first = claim(queue)
    jobs = [first, *gather(queue, 5), claim(queue)]
    assert payloads(jobs) == numbered(7)
    assert jobs[4].type == "foreign"
    first.ack()
    queue.ack_many(jobs[1:])
    assert observer.leftovers(queue_name) == []


@pytest.mark.engine("redis")
def test_entries_look_like_those_of_single_calls(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    queue.enqueue(b"x", type="t")
    queue.enqueue(b"x")
    queue.enqueue_many([cwist_jq.Item(b"x", type="t"), b"x"])
    queue.enqueue_all([cwist_jq.Item(b"x", type="t"), b"x"])
    fields = [list(entry[1].items()) for entry in redis.entries(queue_name)]
    assert fields[2:4] == fields[4:] == fields[:2]


@pytest.mark.engine("nats")
def test_messages_look_like_those_of_single_calls(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    queue.enqueue(b"x", type="t")
    queue.enqueue(b"x")
    queue.enqueue_many([cwist_jq.Item(b"x", type="t"), b"x"])
    seen = [(m.subject, m.data, m.block) for m in nats.messages(nats.stream(queue_name))]
    assert seen[2:] == seen[:2]


def test_ten_thousand_jobs_leave_nothing_behind(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """SPEC rule 3, L01: no entry, no counter, no key that grows with the number of jobs."""
    count = 10_000
    ids = queue.enqueue_many(numbered(count))
    assert len(set(ids)) == count
    assert observer.ready_and_claimed(queue_name) == count
    seen: list[cwist_jq.Job] = []
    while len(seen) < count:
        jobs = queue.claim_many(MOST, timeout=PATIENCE)
        assert jobs
        queue.ack_many(jobs)
        seen += jobs
    assert payloads(seen) == numbered(count)
    assert [job.id for job in seen] == ids
    assert observer.leftovers(queue_name) == []
    no_job(queue)


def test_sizes_from_nothing_to_the_limit_share_a_batch(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """P02: also over a retry, a release and an early end of some."""
    queue = make_queue(max_retries=9)
    sizes = [NATS_LIMIT, 0, 1, 70_000, 0, 4096, NATS_LIMIT, 3, 65_536, 255, 2047, 2048, 32_769]
    sent = [bytes_of(size, salt) for salt, size in enumerate(sizes)]
    wanted = Counter(map(digest, sent))
    queue.enqueue_many(sent)
    jobs = gather(queue, len(sent))
    assert payloads(jobs) == sent
    for settle in (queue.nack_many, queue.release_many):
        settle(jobs)
        jobs = gather(queue, len(sent))
        assert Counter(map(digest, payloads(jobs))) == wanted
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


@pytest.mark.servers("pinned")
def test_a_hundred_megabytes_in_one_call(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """P02: a hundred payloads as large as NATS takes them; none is lost or cut on the way."""
    queue = make_queue(visibility_timeout=120.0)
    sent = [bytes_of(NATS_LIMIT, salt) for salt in range(100)]
    ids = queue.enqueue_many(sent)
    jobs = gather(queue, len(sent))
    assert [job.id for job in jobs] == ids
    assert all(job.payload == payload for job, payload in zip(jobs, sent, strict=True))
    assert {job.attempts for job in jobs} == {1}
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("call", ["enqueue_many", "enqueue_all"])
def test_a_bad_item_stops_the_whole_piece(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, call: str
) -> None:
    """B01: what is wrong with an item is found before anything is sent."""
    unsent = cwist_jq.NotSent
    bad: list[tuple[Any, type[cwist_jq.Error]]] = [
        (cwist_jq.Item(b"x", type="a\nb"), cwist_jq.InvalidParam),
        (cwist_jq.Item(b"x", type="ü" * 128), cwist_jq.InvalidParam),
        ("text", cwist_jq.InvalidType),
    ]
    for item, kind in bad:
        with failing(unsent, unsent, kind, unsent):
            getattr(queue, call)([b"a", b"b", item, b"d"])
        with pytest.raises(kind, match=r"items\[2\]"):
            getattr(queue, call)([b"a", b"b", item, b"d"])
    assert observer.ready_and_claimed(queue_name) == 0


@pytest.mark.engine("nats")
@pytest.mark.parametrize("known", [True, False], ids=["limit-known", "first-call"])
def test_a_payload_over_the_limit_stops_the_whole_piece(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str, *, known: bool
) -> None:
    unsent = cwist_jq.NotSent
    if known:
        queue.enqueue(b"x")
    with failing(unsent, cwist_jq.TooLarge, unsent):
        queue.enqueue_many([b"a", bytes_of(NATS_LIMIT + 1), b"c"])
    assert nats.ready_and_claimed(queue_name) == known


# ---- all or none ----


def _takes_all(observer: Observer) -> bool:
    """Whether the engine has a step that stores many jobs: NATS from 2.12 on, the others always."""
    if not isinstance(observer, NatsObserver):
        return True
    return observer.is_at_least(2, 12)


@pytest.mark.parametrize("count", [2, MOST])
def test_all_or_none(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, count: int
) -> None:
    items = [cwist_jq.Item(payload, type="größe") for payload in numbered(count)]
    if _takes_all(observer):
        ids = queue.enqueue_all(items)
        assert observer.ready_and_claimed(queue_name) == count
        jobs = gather(queue, count)
        assert payloads(jobs) == numbered(count)
        assert [job.id for job in jobs] == ids
        assert {job.type for job in jobs} == {"größe"}
        queue.ack_many(jobs)
    else:
        with pytest.raises(cwist_jq.Unsupported, match=r"2\.12") as caught:
            queue.enqueue_all(items)
        assert caught.value.results is not None
        assert len(caught.value.results) == count
        assert all(isinstance(one, cwist_jq.Error) for one in caught.value.results)
    assert observer.leftovers(queue_name) == []


@pytest.mark.engine("redis")
def test_nobody_sees_a_part_of_all(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Another client looks again and again."""

    def store() -> None:
        for _ in range(10):
            queue.enqueue_all(numbered(MOST))

    storing = Background(store)
    seen = set()
    while storing.running:
        seen.add(redis.ready_and_claimed(queue_name) % MOST)
    storing.result()
    assert seen <= {0}
    assert redis.ready_and_claimed(queue_name) == 10 * MOST


@pytest.mark.engine("nats")
@pytest.mark.servers("pinned")
def test_all_or_none_when_there_is_no_room_for_all(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    """The stream takes fifty messages, which is its owner's business."""
    queue.enqueue_all(numbered(2))
    queue.ack_many(gather(queue, 2))

    async def limit(js: Any) -> None:
        config = (await js.stream_info(nats.stream(queue_name))).config
        answer = await js._nc.request(
            f"$JS.API.STREAM.UPDATE.{config.name}",
            json.dumps({**config.as_dict(), "max_msgs": 50, "discard": "new"}).encode(),
        )
        assert "error" not in json.loads(answer.data)

    nats.ask(limit)
    with pytest.raises(cwist_jq.Error) as caught:
        queue.enqueue_all(numbered(60))
    assert caught.value.results is not None
    assert all(isinstance(one, cwist_jq.Error) for one in caught.value.results)
    assert nats.ready_and_claimed(queue_name) == 0
    queue.enqueue_all(numbered(50))
    assert nats.ready_and_claimed(queue_name) == 50


def test_one_is_all(queue: cwist_jq.Queue) -> None:
    """A batch of one is a step on any server."""
    ids = queue.enqueue_all([b"one"])
    assert [job.id for job in drain(queue, 1)] == ids


def test_all_or_none_takes_no_more_than_a_thousand(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match="1000"):
        queue.enqueue_all(numbered(MOST + 1))
    assert observer.leftovers(queue_name) == []


# ---- claim ----


def test_a_claim_brings_what_is_ready_up_to_n(queue: cwist_jq.Queue) -> None:
    queue.enqueue_many(numbered(100))
    start = time.monotonic()
    for first, count in ((0, 1), (1, 7), (8, 30)):
        jobs = queue.claim_many(count, timeout=60)
        assert payloads(jobs) == numbered(count, first)
        queue.ack_many(jobs)
    jobs = queue.claim_many(MOST, timeout=60)
    assert payloads(jobs) == numbered(62, 38)
    assert time.monotonic() - start < 30  # it does not wait for more
    queue.ack_many(jobs)
    assert queue.claim_many(MOST, timeout=0) == []


def test_a_blocked_claim_of_many_gets_what_comes(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue()
    waiting = blocked_claim(queue, observer, most=10)
    assert waiting.running
    start = time.monotonic()
    observer.put(queue_name, b"new")
    jobs = waiting.result()
    assert waiting.ended_at - start < 1.0
    assert payloads(jobs) == [b"new"]
    queue.ack_many(jobs)


def test_jobs_that_come_back_reach_a_blocked_claim_of_many(make_queue: MakeQueue) -> None:
    """Rule 9: due retries and lapsed leases, with nobody else there."""
    worker = make_queue(visibility_timeout=0.6, retry_delay=0.6)
    worker.enqueue_many(numbered(20))
    held = gather(worker, 20)
    worker.nack_many(held[:10])
    jobs = gather(worker, 20)
    assert sorted(payloads(jobs)) == sorted(numbered(20))
    assert {job.attempts for job in jobs} == {2}
    worker.ack_many(jobs)
    no_job(worker)


def test_every_job_of_a_batch_has_its_lease(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(visibility_timeout=20.0)
    queue.enqueue_many(numbered(50))
    jobs = gather(queue, 50)
    assert observer.claimed(queue_name) == 50
    if observer.engine != "memory":
        assert observer.visibility_ms(queue_name) == 20_000
    before = [job.lease_remaining for job in jobs]
    assert all(10 < left <= 20 for left in before)
    time.sleep(0.2)
    jobs[0].extend()
    assert jobs[0].lease_remaining > before[0] - 0.15
    assert all(
        job.lease_remaining < left - 0.15 for job, left in zip(jobs[1:], before[1:], strict=True)
    )
    queue.ack_many(jobs)
    assert {job.lease_remaining for job in jobs} == {0.0}


def test_workers_share_the_jobs(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """D01: each job goes to one of four workers, whatever they ask for."""
    count = 1000

    def work(most: int) -> list[bytes]:
        queue = make_queue()
        mine: list[bytes] = []
        while jobs := queue.claim_many(most, timeout=1.0):
            mine += payloads(jobs)
            queue.ack_many(jobs)
        return mine

    make_queue().enqueue_many(numbered(count))
    workers = [Background(work, most) for most in (1, 7, 64, MOST)]
    seen = Counter(payload for worker in workers for payload in worker.result(60))
    assert seen == Counter(numbered(count))
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("n", [0, -1, MOST + 1, 2.0, None, True])
def test_n_out_of_range_is_refused(queue: cwist_jq.Queue, n: Any) -> None:
    queue.enqueue(b"x")
    job = claim(queue)
    with pytest.raises(cwist_jq.InvalidParam):
        queue.claim_many(n, timeout=0)
    with pytest.raises(cwist_jq.InvalidParam):
        queue.ack_and_claim([job], n, timeout=0)
    job.ack()  # it was not touched
    no_job(queue)


@pytest.mark.needs_server
def test_jobs_that_nobody_may_have_do_not_hold_up_the_rest(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """X02, rules 5 and 11: spent and malformed ones inside a batch go to the dead letters."""
    lenient = make_queue(max_retries=9)
    ids = lenient.enqueue_many(numbered(6))
    held = gather(lenient, 6)
    lenient.nack_many(held[::3])
    lenient.release_many([held[at] for at in (1, 2, 4, 5)])
    malformed = observer.put(queue_name, b"malformed", type="x" * 256)
    observer.put(queue_name, b"last")
    strict = make_queue(max_retries=1)
    jobs = gather(strict, 5)
    assert sorted(payloads(jobs)) == [b"1", b"2", b"4", b"5", b"last"]
    assert {job.attempts for job in jobs} == {1}
    strict.ack_many(jobs)
    no_job(strict)
    letters = {letter.id: (letter.cause, letter.payload) for letter in observer.dead(queue_name)}
    assert letters == {
        ids[0]: ("lease-expired", b"0"),
        ids[3]: ("lease-expired", b"3"),
        malformed: ("malformed", b"malformed"),
    }
    assert observer.ready_and_claimed(queue_name) == 0


def test_a_batch_that_is_dropped_comes_back_and_dies(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """X01, L08: no job of it is forgotten, and each dies for itself."""
    queue = make_queue(visibility_timeout=0.6, max_retries=2)
    ids = queue.enqueue_many(numbered(40))
    for attempt in (1, 2):
        jobs = gather(queue, 40)
        assert {job.attempts for job in jobs} == {attempt}
        del jobs
    eventually(lambda: not queue.claim_many(40, timeout=0.2) and queue.dead_count() == 40)
    letters = observer.dead(queue_name)
    assert {letter.id for letter in letters} == set(ids)
    assert {(letter.attempts, letter.cause) for letter in letters} == {(2, "lease-expired")}
    assert observer.ready_and_claimed(queue_name) == 0


# ---- the ends of jobs ----


def test_each_job_gets_its_own_result(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue()
    other = make_queue(queue_name + "-other")
    closed, invalid = cwist_jq.Closed, cwist_jq.InvalidParam
    for settle, attempts in ((queue.ack_many, 0), (queue.nack_many, 2), (queue.release_many, 1)):
        queue.enqueue_many(numbered(3))
        other.enqueue(b"foreign")
        jobs = gather(queue, 3)
        foreign = claim(other)
        jobs[2].ack()
        with failing(None, closed, invalid, None, closed):
            settle([jobs[0], jobs[0], foreign, jobs[1], jobs[2]])
        with pytest.raises(cwist_jq.InvalidType, match=r"jobs\[1\]"):
            settle([jobs[0], b"no job"])  # type: ignore[list-item]
        if attempts:
            jobs = gather(queue, 2)
            assert {job.attempts for job in jobs} == {attempts}
            queue.ack_many(jobs)
        assert observer.leftovers(queue_name) == []


def test_what_failed_is_named_by_its_place_among_all(queue: cwist_jq.Queue) -> None:
    """More jobs than one piece: the text counts in what the caller gave."""
    queue.enqueue_many(numbered(MOST + 2))
    jobs = gather(queue, MOST + 2)
    with pytest.raises(cwist_jq.Closed, match=rf"jobs\[{MOST + 2}\]: "):
        queue.ack_many([*jobs, jobs[0]])
    queue.enqueue_many(numbered(MOST))
    jobs = gather(queue, MOST)
    with pytest.raises(cwist_jq.Closed, match=rf"jobs\[{MOST}\]: "):
        queue.ack_many([*jobs, jobs[0]])


@pytest.mark.plain
def test_a_job_keeps_no_text_of_its_neighbours(queue: cwist_jq.Queue) -> None:
    """What Python has copied is freed in C, however long one job of the claim is kept."""
    queue.enqueue_many([b"x" * 4096] * 3)
    jobs = gather(queue, 3)
    assert payloads(jobs) == [b"x" * 4096] * 3
    for job in jobs:
        place: Any = job._batch
        assert not place.texts
        assert not place.payloads
    queue.ack_many(jobs)


@pytest.mark.slow
@pytest.mark.parametrize("settle", ["ack_many", "nack_many", "release_many"])
def test_a_lost_lease_among_others_is_told(
    make_queue: MakeQueue, observer: Observer, queue_name: str, settle: str
) -> None:
    """D04: nothing changes for it, and all else is done."""
    queue = make_queue(visibility_timeout=1.0, max_retries=99)
    queue.enqueue(b"slow")
    late = claim(queue)
    fresh = claim(queue)
    assert (fresh.id, fresh.attempts) == (late.id, 2)
    queue.enqueue_many(numbered(20))
    jobs = gather(queue, 20)
    wanted: list[type[cwist_jq.Error] | None] = [None] * 21
    wanted[7] = cwist_jq.LeaseLost
    with failing(*wanted):
        getattr(queue, settle)([*jobs[:7], late, *jobs[7:]])
    fresh.extend()  # still its worker's
    left = [] if settle == "ack_many" else gather(queue, 20)
    assert {job.id for job in left} == (set() if not left else {job.id for job in jobs})
    queue.ack_many([fresh, *left])
    assert observer.leftovers(queue_name) == []


@pytest.mark.engine("redis")
def test_an_ack_of_many_says_how_many_were_not_there(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Rule 6: one XDEL for all answers a number; somebody removed three by hand."""
    queue.enqueue_many(numbered(10))
    jobs = gather(queue, 10)
    redis.client.xdel(redis.key(queue_name, "s"), *[job.id for job in jobs[2:5]])
    with pytest.raises(cwist_jq.Error, match="3 of 10") as caught:
        queue.ack_many(jobs)
    results = caught.value.results
    assert results is not None
    assert all(results[at] is not None for at in (2, 3, 4))
    assert redis.leftovers(queue_name) == []  # the others are gone all the same


def test_nacks_of_a_batch_retry_or_bury_each_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Rule 4, X02: the last allowed delivery dies at that nack; everything about it is kept."""
    queue = make_queue(max_retries=2, consumer="worker-7")
    old = queue.enqueue_many([cwist_jq.Item(payload, type="ü") for payload in numbered(30)])
    queue.nack_many(gather(queue, 30))
    assert observer.dead(queue_name) == []
    twice = gather(queue, 30)
    new = queue.enqueue_many(numbered(30, 30))
    once = gather(queue, 30)
    queue.nack_many([job for pair in zip(twice, once, strict=True) for job in pair])
    letters = observer.dead(queue_name)
    assert {letter.id: letter.payload for letter in letters} == dict(
        zip(old, numbered(30), strict=True)
    )
    facts = {(d.type, d.attempts, d.cause, d.reason, d.consumer) for d in letters}
    assert facts == {("ü", 2, "nacked", None, "worker-7")}
    assert len(letters) == queue.dead_count() == 30
    assert observer.ready_and_claimed(queue_name) == 30
    jobs = gather(queue, 30)
    assert [(job.id, job.attempts) for job in jobs] == [(job_id, 2) for job_id in new]
    queue.ack_many(jobs)
    assert observer.ready_and_claimed(queue_name) == 0


@pytest.mark.engine("redis")
def test_a_server_that_forgot_the_scripts_learns_them_in_the_same_call(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """As after a restart; each script of a batch, many times in one piece."""
    queue = make_queue(max_retries=2)
    redis.client.script_flush()
    queue.enqueue_all(numbered(300))
    for settle in (queue.release_many, queue.nack_many, queue.nack_many):
        jobs = gather(queue, 300)
        redis.client.script_flush()
        settle(jobs)
    assert len(redis.dead(queue_name)) == queue.dead_count() == 300
    assert redis.ready_and_claimed(queue_name) == 0


def test_nacks_of_a_batch_keep_the_retry_delay(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """S14: whatever the lease."""
    queue = make_queue(retry_delay=1.0, visibility_timeout=60.0)
    queue.enqueue_many(numbered(20))
    queue.nack_many(gather(queue, 20))
    start = time.monotonic()
    assert queue.claim_many(20, timeout=0) == []
    jobs = gather(queue, 20)
    assert 0.85 < time.monotonic() - start < 3.0
    assert {job.attempts for job in jobs} == {2}
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


def test_releases_of_a_batch_spend_no_attempt(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """Rule 14, N05: even where one delivery is all that is allowed."""
    queue = make_queue(max_retries=1)
    ids = queue.enqueue_many(numbered(100))
    for _ in range(3):
        jobs = gather(queue, 100)
        assert {job.attempts for job in jobs} == {1}
        assert {job.id for job in jobs} == set(ids)
        queue.release_many(jobs)
        assert observer.dead(queue_name) == []
    queue.ack_many(gather(queue, 100))
    assert observer.leftovers(queue_name) == []


# ---- ack and claim ----


def test_ack_and_claim_works_through_a_queue(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    queue.enqueue_many(numbered(250))
    seen: list[bytes] = []
    jobs: list[cwist_jq.Job] = []
    while len(seen) < 250:
        jobs = queue.ack_and_claim(jobs, 60, timeout=PATIENCE)
        assert jobs
        assert {job.attempts for job in jobs} == {1}
        seen += payloads(jobs)
    assert queue.ack_and_claim(jobs, 60, timeout=0) == []
    assert seen == numbered(250)
    assert observer.leftovers(queue_name) == []


def test_ack_and_claim_waits_for_a_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """The acks are not put off until a job comes."""
    queue = make_queue()
    queue.enqueue_many(numbered(5))
    waiting = Background(queue.ack_and_claim, gather(queue, 5), 10, 30)
    eventually(lambda: observer.leftovers(queue_name) == [])
    assert waiting.running
    observer.put(queue_name, b"new")
    jobs = waiting.result()
    assert payloads(jobs) == [b"new"]
    queue.ack_many(jobs)


def test_ack_and_claim_tells_acks_that_failed(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    """The jobs that came all the same are handed over with the exception."""
    queue.enqueue_many(numbered(3))
    jobs = gather(queue, 2)
    jobs[1].ack()
    with pytest.raises(cwist_jq.Closed) as caught:
        queue.ack_and_claim(jobs, 10, timeout=0)
    assert caught.value.results is not None
    assert caught.value.results[0] is None
    assert isinstance(caught.value.results[1], cwist_jq.Closed)
    claimed = list(caught.value.claimed) or gather(queue, 1)
    assert payloads(claimed) == [b"2"]
    queue.ack_many(claimed)
    assert observer.leftovers(queue_name) == []


# ---- claims that are given up ----


@pytest.mark.parametrize("how", ["interrupt", "close"])
def test_a_claim_that_is_given_up_hands_all_back(
    make_queue: MakeQueue, observer: Observer, queue_name: str, how: str
) -> None:
    """Rule 14: what was on its way is released; no job is lost, and none has spent an attempt."""
    for turn in range(5):
        name = f"{queue_name}-{turn}"
        survivor = make_queue(name)
        queue = make_queue(name)
        waiting = blocked_claim(queue, observer, most=50)
        survivor.enqueue_many(numbered(50))
        getattr(queue, how)()
        try:
            came = waiting.result()
        except (cwist_jq.Interrupted, cwist_jq.Closed):
            came = []
        if how == "close" and came:
            continue  # it was quicker, and nobody can settle these before their leases end
        if came:
            queue.ack_many(came)
        rest = gather(survivor, 50 - len(came))
        assert {job.attempts for job in rest} <= {1}
        survivor.ack_many(rest)
        assert observer.leftovers(name) == []
