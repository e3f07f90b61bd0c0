"""The layout on Redis, as docs/wire-format.md has it, written and read by another client."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, no_job, only_letter
from tests.observers import RedisObserver
from tests.waiting import eventually

pytestmark = pytest.mark.engine("redis")


@pytest.fixture
def stream(redis: RedisObserver, queue_name: str) -> str:
    """The key of the stream."""
    return redis.key(queue_name, "s")


def _fields(redis: RedisObserver, name: str) -> list[tuple[bytes, bytes]]:
    """The fields of the only entry, in their order."""
    ((_, fields),) = redis.entries(name)
    return list(fields.items())


# ---- what we write ----


def test_an_enqueue_is_type_and_payload_and_nothing_else(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """It is what CWIST writes, in the same order."""
    first = queue.enqueue(b"P\x00", type="T")
    second = queue.enqueue(b"Q")
    assert [(entry, list(fields.items())) for entry, fields in redis.entries(queue_name)] == [
        (first, [(b"type", b"T"), (b"payload", b"P\x00")]),
        (second, [(b"type", b""), (b"payload", b"Q")]),
    ]
    assert redis.keys(queue_name) == ["s"]


def test_the_group_and_the_settings(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    queue = make_queue(visibility_timeout=0.5)
    queue.enqueue(b"x")
    assert redis.client.xinfo_groups(stream) == []
    drain(queue, 1)
    (group,) = redis.client.xinfo_groups(stream)
    assert group["name"] == b"cwist-jq"
    conf = redis.client.hgetall(redis.key(queue_name, "conf"))
    assert conf == {b"version": b"1", b"visibility": b"500"}


def test_every_delivery_has_an_entry_of_its_own(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """So XDEL of an old one answers 0: the fence needs no script."""
    queue = make_queue(visibility_timeout=0.3, consumer="me")
    job_id = queue.enqueue(b"P", type="T")
    claim(queue).nack()
    ((entry, _),) = redis.entries(queue_name)
    assert entry != job_id
    assert _fields(redis, queue_name) == [
        (b"type", b"T"),
        (b"payload", b"P"),
        (b"cwist-id", job_id.encode()),
        (b"cwist-attempts", b"1"),
    ]
    assert redis.client.xdel(stream, job_id) == 0
    claim(queue).release()
    assert _fields(redis, queue_name)[2:] == [
        (b"cwist-id", job_id.encode()),
        (b"cwist-attempts", b"1"),
    ]
    dropped = claim(queue)
    job = claim(queue)
    assert _fields(redis, queue_name)[2:] == [
        (b"cwist-id", job_id.encode()),
        (b"cwist-attempts", b"2"),
        (b"cwist-consumer", b"me"),
    ]
    assert (dropped.attempts, job.attempts) == (2, 3)
    job.ack()


def test_a_waiting_job_is_its_id_with_the_fields_beside_it(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue(retry_delay=60)
    job_id = queue.enqueue(b"P\xff", type="T")
    claim(queue).nack()
    ((member, score),) = redis.client.zrange(redis.key(queue_name, "delay"), 0, -1, withscores=True)
    assert member == job_id.encode()
    assert time.time() + 59 < score / 1000 < time.time() + 61
    assert redis.waiting(queue_name) == {
        job_id: {
            "type": b"T",
            "payload": b"P\xff",
            "cwist-id": job_id.encode(),
            "cwist-attempts": b"1",
        }
    }
    assert redis.ready_and_claimed(queue_name) == 0


# ---- what others write ----


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"type": "T", "payload": "P"}, "T"),
        ({"type": "", "payload": "P"}, None),
        ({"payload": "P"}, None),
        ({"payload": "P", "type": "T"}, "T"),
        ({"before": "1", "type": "T", "between": "2", "payload": "P", "after": "3"}, "T"),
        ({"type": "é" * 127, "payload": "P"}, "é" * 127),
    ],
    ids=["plain", "empty-type", "no-type", "other-order", "more-fields", "utf-8"],
)
def test_a_foreign_entry_is_a_job(
    queue: cwist_jq.Queue,
    redis: RedisObserver,
    queue_name: str,
    stream: str,
    fields: dict[str, str],
    kind: str | None,
) -> None:
    """Rule 11: the type may be missing, and what we do not know is ignored."""
    entry = redis.client.xadd(stream, fields).decode()
    job = claim(queue)
    assert (job.payload, job.type, job.id, job.attempts) == (b"P", kind, entry, 1)
    job.ack()
    assert redis.leftovers(queue_name) == []


def test_unknown_fields_are_kept_over_every_move(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """Rule 11: nack, nack with a delay, release, a lease that ended, and the dead letter."""
    queue = make_queue(visibility_timeout=0.3, max_retries=4)
    slow = make_queue(visibility_timeout=0.3, max_retries=4, retry_delay=0.1)
    foreign = {b"trace": b"\x00\xff", b"type": b"T", b"payload": b"P", b"x-tenant": b"7"}
    redis.client.xadd(stream, foreign)

    def kept() -> bool:
        return dict(_fields(redis, queue_name)).items() >= foreign.items()

    claim(queue).nack()
    assert kept()
    claim(queue).release()
    assert kept()
    claim(slow).nack()
    assert (
        redis.waiting(queue_name).popitem()[1].items()
        >= {name.decode(): value for name, value in foreign.items()}.items()
    )
    dropped = claim(queue)
    job = claim(queue)
    assert kept()
    job.nack()
    letter = only_letter(redis, queue_name)
    assert (letter.type, letter.payload, letter.attempts) == ("T", b"P", dropped.attempts + 1)
    assert letter.others == {"trace": b"\x00\xff", "x-tenant": b"7"}


MALFORMED: dict[str, dict[bytes, bytes]] = {
    "no payload": {b"type": b"T", b"body": b"B"},
    "nothing of ours": {b"k": b"v"},
    "type not UTF-8": {b"type": b"\xff\xfe", b"payload": b"P"},
    "type with NUL": {b"type": b"a\x00b", b"payload": b"P"},
    "type with newline": {b"type": b"a\nb", b"payload": b"P"},
    "type too long": {b"type": b"x" * 256, b"payload": b"P"},
    "id is none": {b"payload": b"P", b"cwist-id": b"\x01\xff"},
    "attempts not a number": {b"payload": b"P", b"cwist-attempts": b"many"},
    "attempts negative": {b"payload": b"P", b"cwist-attempts": b"-1"},
    "attempts too many": {b"payload": b"P", b"cwist-attempts": b"1000001"},
    "attempts far too many": {b"payload": b"P", b"cwist-attempts": b"18446744073709551617"},
    "attempts empty": {b"payload": b"P", b"cwist-attempts": b""},
    "consumer with space": {b"payload": b"P", b"cwist-consumer": b"a b"},
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_entry_is_dead_and_the_loop_lives(
    make_queue: MakeQueue,
    redis: RedisObserver,
    queue_name: str,
    stream: str,
    fields: dict[bytes, bytes],
) -> None:
    """P01, X02, rule 11: to the dead letters with its raw fields; the next job comes."""
    queue = make_queue(consumer="reader")
    entry = redis.client.xadd(stream, dict(fields)).decode()
    redis.client.xadd(stream, {"payload": "next"})
    job = claim(queue)
    assert job.payload == b"next"
    letter = only_letter(redis, queue_name)
    assert (letter.cause, letter.payload) == ("malformed", fields.get(b"payload"))
    assert letter.reason
    assert letter.consumer == "reader"
    assert letter.id == entry
    raw = {name.decode(): value for name, value in fields.items() if name != b"payload"}
    assert letter.others == raw
    job.ack()
    assert redis.ready_and_claimed(queue_name) == 0
    assert redis.claimed(queue_name) == 0
    assert queue.dead_count() == 1


def test_a_malformed_entry_whose_lease_ended_is_dead_all_the_same(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """Another client took it and died; recovery passes it on as it is."""
    queue = make_queue(visibility_timeout=0.2)
    no_job(queue)
    redis.client.xadd(stream, {b"cwist-attempts": b"many", b"payload": b"P"})
    redis.client.xreadgroup("cwist-jq", "other", {stream: ">"}, count=1)
    eventually(lambda: queue.claim(0.1) is None and redis.dead(queue_name))
    letter = only_letter(redis, queue_name)
    assert (letter.cause, letter.payload) == ("malformed", b"P")
    assert letter.others["cwist-attempts"] == b"many"
    assert redis.ready_and_claimed(queue_name) == 0


def test_a_foreign_entry_may_say_how_often_it_was_tried(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """A third client that hands a job back writes what the page says."""
    queue = make_queue(max_retries=5)
    fields = {"type": "T", "payload": "P", "cwist-id": "17-3", "cwist-attempts": "4"}
    redis.client.xadd(stream, fields)
    job = claim(queue)
    assert (job.id, job.attempts) == ("17-3", 5)
    job.nack("enough")
    letter = only_letter(redis, queue_name)
    assert (letter.id, letter.attempts, letter.first_ms) == ("17-3", 5, 17)


# ---- ghosts ----


def test_an_entry_deleted_by_hand_is_no_ghost_for_ever(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """S07: XDEL while it is pending; the next job comes, and the pending list is clean again."""
    queue = make_queue(visibility_timeout=0.3)
    queue.enqueue(b"ghost")
    held = claim(queue)
    redis.client.xdel(stream, held.id)
    queue.enqueue(b"next")
    assert drain(queue, 1)[0].payload == b"next"
    no_job(queue, timeout=0.6)
    eventually(lambda: redis.claimed(queue_name) == 0)
    with pytest.raises(cwist_jq.LeaseLost):
        held.ack()
    assert redis.leftovers(queue_name) == []


@pytest.mark.parametrize("call", ["ack", "nack", "release", "extend"])
def test_calls_on_a_job_deleted_by_hand(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str, call: str
) -> None:
    """S07: the job is gone; nothing brings it back."""
    queue = make_queue(visibility_timeout=0.3, max_retries=1)
    queue.enqueue(b"gone")
    held = claim(queue)
    redis.client.xdel(stream, held.id)
    if call == "extend":  # 6.2 asks only the pending list; the job's end then tells
        with contextlib.suppress(cwist_jq.LeaseLost):
            held.extend()
        call = "ack"
    with pytest.raises(cwist_jq.LeaseLost):
        getattr(held, call)()
    no_job(queue, timeout=0.6)
    assert redis.leftovers(queue_name) == []


# ---- keys that are no queue's ----


@pytest.mark.parametrize("suffix", ["s", "delay", "wait", "dead", "deadbody", "conf"])
def test_a_key_of_the_wrong_kind_is_an_error_and_no_crash(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, suffix: str
) -> None:
    """The server's own words come through, and no job is lost on the way."""
    queue = make_queue(max_retries=2, retry_delay=0.01, visibility_timeout=0.2)
    key = redis.key(queue_name, suffix)
    redis.client.set(key, "not a queue's")

    def life() -> Any:
        queue.enqueue(b"x")
        for _ in range(4):
            job = queue.claim(0.5)
            if job is not None:
                job.nack()
        return queue.dead_count()

    with pytest.raises(cwist_jq.Error, match="WRONGTYPE"):
        life()
    redis.client.delete(key)
    if suffix == "s":
        return
    assert redis.ready_and_claimed(queue_name) == 1
    if suffix.startswith("dead"):  # its last delivery has ended
        eventually(lambda: queue.claim(0.1) is None and redis.dead(queue_name))
        assert only_letter(redis, queue_name).payload == b"x"
    else:
        assert drain(queue, 1)[0].payload == b"x"


def test_a_queue_in_an_unknown_format_is_left_alone(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """A later version of the layout: no claim, and nothing is changed."""
    queue = make_queue()
    redis.client.hset(redis.key(queue_name, "conf"), "version", "2")
    queue.enqueue(b"x")
    before = redis.entries(queue_name)
    with pytest.raises(cwist_jq.Error, match="unknown wire format 2"):
        queue.claim(0.2)
    assert redis.entries(queue_name) == before
    assert redis.client.hgetall(redis.key(queue_name, "conf")) == {b"version": b"2"}


def test_an_entry_with_more_fields_than_a_script_can_carry(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str, stream: str
) -> None:
    """Up to 3000 fields with type and payload are kept; more are malformed, and the loop lives."""
    queue = make_queue(max_retries=2)
    many: dict[Any, Any] = {f"f{number}": str(number) for number in range(2998)}
    redis.client.xadd(stream, {"type": "T", "payload": "P", **many})
    claim(queue).nack()
    claim(queue).nack()
    letter = only_letter(redis, queue_name)
    assert letter.others == {name: value.encode() for name, value in many.items()}
    redis.client.xadd(stream, {"type": "T", "payload": "P", **many, "one": "more"})
    redis.client.xadd(stream, {"payload": "next"})
    assert drain(queue, 1)[0].payload == b"next"
    assert [one.cause for one in redis.dead(queue_name)] == ["nacked", "malformed"]
