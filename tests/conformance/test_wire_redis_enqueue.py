"""Delays, dedupe keys, headers and limits on Redis, seen by another client."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import cwist_jq
from cwist_jq import DuplicateId, Item
from tests.conformance.helpers import MakeQueue, claim, drain, give_away, no_job, only_letter
from tests.observers import RedisObserver
from tests.waiting import eventually

pytestmark = pytest.mark.engine("redis")

HEADERS = {"traceparent": "00-0af7-b7ad-01", "X-Tenant": "é 7"}
WIRE_HEADERS = [(b"h:traceparent", b"00-0af7-b7ad-01"), (b"h:X-Tenant", "é 7".encode())]


@pytest.fixture
def stream(redis: RedisObserver, queue_name: str) -> str:
    """The key of the stream."""
    return redis.key(queue_name, "s")


def _entry(redis: RedisObserver, name: str) -> tuple[str, list[tuple[bytes, bytes]]]:
    """The only entry: its id, and its fields in their order."""
    ((entry, fields),) = redis.entries(name)
    return entry, list(fields.items())


# ---- headers ----


def test_headers_are_fields_behind_the_payload(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """A plain XADD: no key but the stream is touched."""
    job_id = queue.enqueue(b"P", type="T", headers=HEADERS)
    fields = [(b"type", b"T"), (b"payload", b"P"), *WIRE_HEADERS]
    assert _entry(redis, queue_name) == (job_id, fields)
    assert redis.keys(queue_name) == ["s"]
    job = claim(queue)
    assert dict(job.headers) == HEADERS
    job.ack()
    assert redis.leftovers(queue_name) == []


def test_headers_go_along_over_every_move(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Nack, nack with a delay, release, a lease that ended, the dead letter, its requeue."""
    queue = make_queue(visibility_timeout=0.3, max_retries=4)
    job_id = queue.enqueue(b"P", headers=HEADERS)
    claim(queue).nack()
    job = claim(queue)
    assert dict(job.headers) == HEADERS
    job.nack(delay=0.05)
    claim(queue).release()
    dropped, job = give_away(queue)
    assert dict(dropped.headers) == dict(job.headers) == HEADERS
    job.nack()
    letter = only_letter(redis, queue_name)
    assert letter.others == {name.decode(): value for name, value in WIRE_HEADERS}
    assert dict(queue.dead.read(job_id).headers) == HEADERS
    queue.dead.requeue(job_id)
    assert _entry(redis, queue_name)[1][3:] == WIRE_HEADERS
    (job,) = drain(queue, 1)
    assert (job.id, job.attempts) == (job_id, 1)


def test_foreign_headers_that_break_the_rule_are_kept_and_not_told(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """Rule 11: they are fields like any other."""
    queue = make_queue(max_retries=1)
    odd = {b"h:": b"x", b"h:a b": b"x", b"h:bytes": b"\xff", b"h:nul": b"a\x00b", b"hat": b"x"}
    redis.client.xadd(stream, {b"payload": b"P", **odd, b"h:good": b"1"})
    job = claim(queue)
    assert dict(job.headers) == {"good": "1"}
    job.nack()
    letter = only_letter(redis, queue_name)
    kept = {name.decode(): value for name, value in odd.items()} | {"h:good": b"1"}
    assert letter.others == kept
    assert dict(queue.dead.read(letter.id).headers) == {"good": "1"}


def test_many_foreign_headers(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """64 are told, and all are kept."""
    queue = make_queue(max_retries=2)
    many = {f"h:n{number}": str(number) for number in range(100)}
    redis.client.xadd(stream, {"payload": "P", **many})
    job = claim(queue)
    assert dict(job.headers) == {f"n{number}": str(number) for number in range(64)}
    job.nack()
    claim(queue).nack()
    assert only_letter(redis, queue_name).others == {
        name: value.encode() for name, value in many.items()
    }


# ---- delays ----


def test_a_delayed_job_waits_on_the_server(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Its id is one of the stream's, and its fields stand beside it."""
    job_id = queue.enqueue(b"P\xff", type="T", delay=60, headers=HEADERS)
    ((member, score),) = redis.client.zrange(redis.key(queue_name, "delay"), 0, -1, withscores=True)
    assert member == job_id.encode()
    assert time.time() + 58 < score / 1000 < time.time() + 61
    (fields,) = redis.waiting(queue_name).values()
    assert list(fields.items()) == [
        ("type", b"T"),
        ("payload", b"P\xff"),
        ("cwist-id", job_id.encode()),
        *((name.decode(), value) for name, value in WIRE_HEADERS),
    ]
    assert redis.entries(queue_name) == []
    assert queue.enqueue(b"now") > job_id
    drain(queue, 1)
    assert redis.delayed(queue_name) == 1


def test_due_jobs_come_with_their_first_id(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    late = queue.enqueue(b"late", delay=0.2)
    soon = queue.enqueue(b"soon", delay=0.05)
    jobs = [claim(queue), claim(queue)]
    assert [(job.payload, job.id, job.attempts) for job in jobs] == [
        (b"soon", soon, 1),
        (b"late", late, 1),
    ]
    queue.ack_many(jobs)
    assert redis.leftovers(queue_name) == []


def test_a_job_of_a_delayed_release_waits_without_an_attempt(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    job_id = queue.enqueue(b"P")
    claim(queue).release(delay=60)
    assert redis.waiting(queue_name)[job_id]["cwist-attempts"] == b"0"
    assert redis.claimed(queue_name) == 0
    redis.client.zadd(redis.key(queue_name, "delay"), {job_id: 1})
    job = claim(queue)
    assert (job.id, job.attempts) == (job_id, 1)
    job.ack()


def test_each_nack_has_a_delay_of_its_own(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue(retry_delay=1000)
    for number in range(3):
        queue.enqueue(b"%d" % number)
    first, second, third = (claim(queue) for _ in range(3))
    first.nack(delay=60)
    second.nack()
    third.nack(delay=0)
    found = dict(redis.client.zrange(redis.key(queue_name, "delay"), 0, -1, withscores=True))
    waits = {key.decode(): score / 1000 - time.time() for key, score in found.items()}
    assert waits.keys() == {first.id, second.id}
    assert 58 < waits[first.id] < 61
    assert 998 < waits[second.id] < 1001
    assert drain(queue, 1)[0].id == third.id


# ---- dedupe keys ----


def test_a_key_names_its_job_and_where_it_is(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Each move updates it; an ack leaves nothing."""
    queue = make_queue(visibility_timeout=0.3)
    job_id = queue.enqueue(b"P", dedupe_key="k é")

    def held() -> str:
        entry, fields = _entry(redis, queue_name)
        assert (b"cwist-key", "k é".encode()) in fields
        assert redis.dedupe(queue_name) == {"k é": f"{job_id} {entry}"}
        return entry

    assert held() == job_id
    claim(queue).nack()
    assert held() != job_id
    claim(queue).release()
    held()
    claim(queue).nack(delay=0.1)
    assert redis.dedupe(queue_name) == {"k é": f"{job_id} -"}
    dropped, job = give_away(queue)
    held()
    with pytest.raises(cwist_jq.LeaseLost):
        dropped.ack()
    held()
    job.ack()
    assert redis.leftovers(queue_name) == []


def test_a_delayed_job_with_a_key(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    job_id = queue.enqueue(b"P", delay=0.1, dedupe_key="k")
    assert redis.dedupe(queue_name) == {"k": f"{job_id} -"}
    again = queue.enqueue(b"Q", dedupe_key="k")
    assert isinstance(again, DuplicateId)
    assert again == job_id
    job = claim(queue)
    assert redis.dedupe(queue_name) == {"k": f"{job_id} {_entry(redis, queue_name)[0]}"}
    assert queue.enqueue(b"Q", delay=5, dedupe_key="k") == job_id
    assert (job.id, job.payload) == (job_id, b"P")
    job.ack()
    assert redis.leftovers(queue_name) == []


ENDS: dict[str, Callable[[cwist_jq.Queue, cwist_jq.Job], object]] = {
    "ack": lambda _, job: job.ack(),
    "ack_many": lambda queue, job: queue.ack_many([job]),
    "ack_and_claim": lambda queue, job: queue.ack_and_claim([job], 1, 0),
    "dead": lambda _, job: job.nack(dead=True),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_end_of_a_job_frees_its_key(
    queue: cwist_jq.Queue,
    redis: RedisObserver,
    queue_name: str,
    end: Callable[[cwist_jq.Queue, cwist_jq.Job], object],
) -> None:
    for _ in range(2):  # the first call teaches the server the script
        first = queue.enqueue(b"P", dedupe_key="k")
        job = claim(queue)
        assert queue.enqueue(b"P", dedupe_key="k") == first
        end(queue, job)
        assert redis.dedupe(queue_name) == {}
        assert redis.ready_and_claimed(queue_name) == 0
        assert redis.claimed(queue_name) == 0
    assert "dedupe" not in redis.keys(queue_name)


def test_a_dead_letter_has_lost_its_key(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Requeued, it is a job like any other; the key is another's by then."""
    queue = make_queue(max_retries=1)
    dead = queue.enqueue(b"P", dedupe_key="k")
    claim(queue).nack()
    assert only_letter(redis, queue_name).others == {}
    live = queue.enqueue(b"Q", dedupe_key="k")
    queue.dead.requeue(dead)
    assert redis.dedupe(queue_name) == {"k": f"{live} {live}"}
    drain(queue, 2)
    assert redis.leftovers(queue_name) == []


def test_acks_of_many_with_and_without_keys(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Each kind has its own commands, and each job its own result."""
    items = [Item(b"%d" % n, dedupe_key=f"k{n}" if n % 3 else None) for n in range(30)]
    queue.enqueue_many(items)
    # A server that does not know the script yet stores those with a key after the others.
    jobs = sorted(queue.claim_many(30, 1), key=lambda job: int(job.payload))
    redis.client.xdel(redis.key(queue_name, "s"), jobs[1].id)
    with pytest.raises(cwist_jq.LeaseLost) as lost:
        queue.ack_many(jobs[:4])
    results = lost.value.results or []
    assert [type(one) for one in results] == [type(None), cwist_jq.LeaseLost, *[type(None)] * 2]
    queue.ack_and_claim(jobs[4:], 1, 0)
    assert redis.ready_and_claimed(queue_name) == redis.claimed(queue_name) == 0
    assert redis.dedupe(queue_name).keys() == {"k1"}  # its job was not acked


@pytest.mark.parametrize(
    "spoil",
    [
        lambda redis, name, job_id: redis.client.xdel(redis.key(name, "s"), job_id),
        lambda redis, name, _: redis.client.delete(redis.key(name, "s")),
        lambda redis, name, _: redis.client.hset(redis.key(name, "dedupe"), "k", "nonsense"),
        lambda redis, name, _: redis.client.hset(redis.key(name, "dedupe"), "k", "7-7 -"),
        lambda redis, name, _: redis.client.delete(redis.key(name, "dedupe")),
        lambda redis, name, _: redis.wipe(name),
    ],
    ids=["xdel", "stream", "nonsense", "other", "hash", "all"],
)
def test_a_key_without_its_job_is_taken_over(
    queue: cwist_jq.Queue,
    redis: RedisObserver,
    queue_name: str,
    spoil: Callable[[RedisObserver, str, str], object],
) -> None:
    """TRANSITIONS, decision 5: the enqueue looks whether the holder is there."""
    first = queue.enqueue(b"P", dedupe_key="k")
    spoil(redis, queue_name, first)
    second = queue.enqueue(b"Q", dedupe_key="k")
    assert not isinstance(second, DuplicateId)
    assert redis.dedupe(queue_name) == {"k": f"{second} {second}"}
    queue.ack_many(queue.claim_many(10, 1))
    assert redis.leftovers(queue_name) == []


def test_a_move_takes_a_key_back_that_was_deleted_by_hand(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    job_id = queue.enqueue(b"P", dedupe_key="k")
    job = claim(queue)
    redis.client.delete(redis.key(queue_name, "dedupe"))
    job.nack()
    assert queue.enqueue(b"Q", dedupe_key="k") == job_id
    drain(queue, 1)
    assert redis.leftovers(queue_name) == []


@pytest.mark.parametrize("key", [b"", b"x" * 256, b"\xff", b"a\nb"])
def test_a_foreign_key_that_breaks_the_rule_is_malformed(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str, key: bytes
) -> None:
    queue = make_queue(visibility_timeout=0.2)
    no_job(queue)
    redis.client.xadd(stream, {b"payload": b"P", b"cwist-key": key})
    redis.client.xreadgroup("cwist-jq", "other", {stream: ">"}, count=1)
    eventually(lambda: queue.claim(0.1) is None and redis.dead(queue_name))
    letter = only_letter(redis, queue_name)
    assert (letter.cause, letter.others["cwist-key"]) == ("malformed", key)
    assert redis.ready_and_claimed(queue_name) == 0


def test_a_foreign_enqueue_with_a_key(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """A third client writes what the page says, and the key is free after the ack."""
    entry = redis.client.xadd(stream, {"type": "", "payload": "P", "cwist-key": "k"}).decode()
    redis.client.hset(redis.key(queue_name, "dedupe"), "k", f"{entry} {entry}")
    assert queue.enqueue(b"Q", dedupe_key="k") == entry
    drain(queue, 1)
    assert redis.leftovers(queue_name) == []


# ---- batches ----


def test_a_mixed_batch_keeps_its_order(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Plain, with headers, with a key, duplicates, delayed; one exchange."""
    queue.enqueue(b"first", dedupe_key="taken")
    items = [
        Item(b"0"),
        Item(b"1", dedupe_key="a"),
        Item(b"2", headers={"h": "1"}),
        Item(b"3", dedupe_key="a"),
        Item(b"4", delay=60),
        Item(b"5", dedupe_key="taken"),
        Item(b"6"),
    ]
    ids = queue.enqueue_many(items)
    assert [isinstance(one, DuplicateId) for one in ids] == [n in (3, 5) for n in range(7)]
    assert ids[3] == ids[1]
    stored = [fields[b"payload"] for _, fields in redis.entries(queue_name)]
    assert stored == [b"first", b"0", b"1", b"2", b"6"]
    assert redis.waiting(queue_name).keys() == {ids[4]}


def test_all_or_none_with_keys_and_delays(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    first = queue.enqueue(b"first", dedupe_key="taken")
    items = [
        Item(b"0", dedupe_key="a", headers={"h": "1"}),
        Item(b"1", dedupe_key="a"),
        Item(b"2", dedupe_key="taken"),
        Item(b"3", delay=60, dedupe_key="b"),
        Item(b"4"),
        Item(b"5", dedupe_key="b"),
    ]
    ids = queue.enqueue_all(items)
    assert [isinstance(one, DuplicateId) for one in ids] == [n in (1, 2, 5) for n in range(6)]
    assert (ids[1], ids[2], ids[5]) == (ids[0], first, ids[3])
    assert redis.dedupe(queue_name) == {
        "taken": f"{first} {first}",
        "a": f"{ids[0]} {ids[0]}",
        "b": f"{ids[3]} -",
    }
    stored = [fields[b"payload"] for _, fields in redis.entries(queue_name)]
    assert stored == [b"first", b"0", b"4"]


# ---- limits ----


def test_a_full_queue_stores_nothing(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Ready, claimed and delayed count; the moves of the library pass."""
    queue = make_queue(max_length=3)
    queue.enqueue(b"claimed")
    held = claim(queue)
    queue.enqueue(b"ready")
    queue.enqueue(b"delayed", delay=60, dedupe_key="k")
    for extra in ({}, {"delay": 5}, {"dedupe_key": "n"}, {"headers": {"h": "1"}}):
        with pytest.raises(cwist_jq.QueueFull, match="3"):
            queue.enqueue(b"more", **extra)
    assert isinstance(queue.enqueue(b"again", dedupe_key="k"), DuplicateId)
    with pytest.raises(cwist_jq.QueueFull):
        queue.enqueue_all([b"1", b"2"])
    held.nack()
    claim(queue).ack()
    with pytest.raises(cwist_jq.QueueFull) as full:
        queue.enqueue_many([Item(b"fits"), Item(b"not"), Item(b"no"), Item(b"k", dedupe_key="k")])
    results = full.value.results or []
    assert [isinstance(one, cwist_jq.QueueFull) for one in results] == [False, True, True, False]
    assert redis.ready_and_claimed(queue_name) + redis.delayed(queue_name) == 3
    assert redis.dedupe(queue_name).keys() == {"k"}
    make_queue().enqueue(b"the limit is of the handle")


def test_a_long_batch_at_the_limit(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """More than one piece: each item has a code of its own."""
    queue = make_queue(max_length=500)
    with pytest.raises(cwist_jq.QueueFull) as full:
        queue.enqueue_many([b"%d" % number for number in range(1000)])
    results = full.value.results or []
    assert len(results) == 1000
    assert all(isinstance(one, str) for one in results[:500])
    assert all(isinstance(one, cwist_jq.QueueFull) for one in results[500:])
    assert redis.ready_and_claimed(queue_name) == 500
