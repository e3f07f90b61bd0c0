"""What CWIST itself leaves on Redis under the same names must not break us."""

from __future__ import annotations

import struct

import pytest

from tests.conformance.helpers import MakeQueue, claim, drain, no_job, only_letter
from tests.observers import RedisObserver
from tests.waiting import eventually

pytestmark = pytest.mark.engine("redis")


def _older(kind: bytes, spent: int, payload: bytes) -> bytes:
    return struct.pack(">II", len(kind), spent) + kind + payload


def test_older_delay_members_become_ready_at_once(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Their scores are of a client's monotonic clock, so they mean nothing here."""
    queue = make_queue(max_retries=5)
    queue.enqueue(b"new")
    members = {
        _older(b"mail", 2, b"\x00old\xff"): 12345.0,
        _older(b"", 0, b""): 1.0,
    }
    redis.client.zadd(redis.key(queue_name, "delay"), members)
    jobs = {job.payload: job for job in drain(queue, 3)}
    assert (jobs[b"\x00old\xff"].type, jobs[b"\x00old\xff"].attempts) == ("mail", 3)
    assert (jobs[b""].type, jobs[b""].attempts) == (None, 1)
    assert redis.leftovers(queue_name) == []


def test_an_unreadable_delay_member_is_a_dead_letter(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue()
    redis.client.zadd(redis.key(queue_name, "delay"), {b"\x00\x00\x01\x00short": 1.0})
    eventually(lambda: queue.claim(0) is None and redis.dead(queue_name))
    letter = only_letter(redis, queue_name)
    assert letter.cause == "malformed"
    assert b"\x00\x00\x01\x00short" in letter.others.values()
    assert redis.delayed(queue_name) == 0


def test_an_id_without_its_body_is_removed(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue()
    redis.client.zadd(redis.key(queue_name, "delay"), {"1-1": 1.0})
    no_job(queue)
    assert redis.delayed(queue_name) == 0
    assert redis.dead(queue_name) == []


def test_older_dead_elements_count_and_the_hash_is_ignored(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    older = _older(b"mail", 5, b"old")
    redis.client.rpush(redis.key(queue_name, "dead"), older)
    redis.client.hset(redis.key(queue_name, "a"), "1-1", 4)
    assert queue.dead_count() == 1
    queue.enqueue(b"new")
    claim(queue).nack()
    assert queue.dead_count() == 2
    assert redis.client.lindex(redis.key(queue_name, "dead"), 0) == older
    assert redis.client.hgetall(redis.key(queue_name, "a")) == {b"1-1": b"4"}


def test_a_group_that_is_there_already_is_used_as_it_is(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """CWIST makes it at `$`; and BUSYGROUP is success."""
    redis.client.xgroup_create(redis.key(queue_name, "s"), "cwist-jq", id="$", mkstream=True)
    queue = make_queue()
    queue.enqueue(b"x")
    drain(queue, 1)
    assert redis.leftovers(queue_name) == []
