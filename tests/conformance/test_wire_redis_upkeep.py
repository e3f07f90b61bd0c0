"""Statistics, purge and pause on Redis, seen by another client."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq import Item
from tests.conformance.helpers import MakeQueue, claim, no_job
from tests.observers import RedisObserver
from tests.waiting import Background, eventually

pytestmark = pytest.mark.engine("redis")


# ---- statistics ----


def test_statistics_change_nothing(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    empty = queue.stats()
    assert (empty.ready, empty.claimed, empty.delayed, empty.dead, empty.consumers) == (0,) * 5
    assert empty.oldest_ready is None
    assert redis.keys(queue_name) == []
    queue.enqueue_many([b"%d" % number for number in range(5)])
    queue.enqueue(b"delayed", delay=60)
    before = queue.stats()  # without a group all are ready
    assert (before.ready, before.claimed, before.delayed, before.consumers) == (5, 0, 1, 0)
    held = claim(queue)
    claim(queue).nack()
    stats = queue.stats()
    assert (stats.ready, stats.claimed, stats.delayed, stats.dead) == (3, 1, 1, 1)
    assert (stats.consumers, stats.paused) == (1, False)
    held.ack()
    assert queue.stats().claimed == 0


def test_the_age_is_that_of_the_job_that_is_ready_longest(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """A job that came back is ready since then; a claimed one does not count."""
    queue = make_queue()
    stream = redis.key(queue_name, "s")
    seconds, micros = redis.client.time()
    now_ms = seconds * 1000 + micros // 1000
    redis.client.xadd(stream, {"payload": "old"}, id=f"{now_ms - 100_000}-0")
    redis.client.xadd(stream, {"payload": "young"}, id=f"{now_ms - 50_000}-0")
    age = queue.stats().oldest_ready
    assert age is not None
    assert 100 <= age < 110
    job = claim(queue)
    age = queue.stats().oldest_ready
    assert age is not None
    assert 50 <= age < 60
    job.release()
    claim(queue).ack()
    age = queue.stats().oldest_ready
    assert age is not None
    assert age < 10


# ---- purge ----


def test_a_purge_takes_what_is_ready_or_delayed(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Claimed and dead ones stay, and so do their keys."""
    queue = make_queue(max_retries=1)
    queue.enqueue(b"dead")
    claim(queue).nack()
    queue.enqueue(b"claimed", dedupe_key="c")
    held = claim(queue)
    queue.enqueue_many(
        [Item(b"%d" % n, dedupe_key=f"r{n}" if n % 2 else None) for n in range(2500)]
    )
    queue.enqueue_many([Item(b"%d" % n, delay=60, dedupe_key=f"d{n}") for n in range(1500)])
    assert queue.purge() == 4000
    assert redis.dedupe(queue_name).keys() == {"c"}
    assert redis.keys(queue_name) == ["conf", "dead", "deadbody", "dedupe", "s"]
    assert (redis.ready_and_claimed(queue_name), redis.claimed(queue_name)) == (1, 1)
    held.ack()
    assert queue.purge() == 0
    assert queue.dead_count() == 1
    assert "dedupe" not in redis.keys(queue_name)


def test_a_purge_before_any_claim(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """There is no group yet, and nothing is made by it."""
    assert queue.purge() == 0
    assert redis.keys(queue_name) == []
    queue.enqueue_many([b"1", b"2"])
    redis.client.zadd(redis.key(queue_name, "delay"), {b"\x00\x00\x00\x00\x00\x00\x00\x00x": 1.0})
    assert queue.purge() == 3
    assert redis.leftovers(queue_name) == []


def test_a_purge_leaves_what_comes_after_it_began(
    queue: cwist_jq.Queue, make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """While jobs come without end, it ends, and deletes what was there."""
    before = set(queue.enqueue_many([b"before"] * 1000))
    before |= set(queue.enqueue_many([Item(b"before", delay=60)] * 1000))
    stop = threading.Event()
    other = make_queue()

    def produce() -> None:
        while not stop.is_set():
            other.enqueue_many([Item(b"after"), Item(b"after", delay=60)])

    producer = Background(produce)
    time.sleep(0.05)
    purged = queue.purge()
    stop.set()
    producer.result(10)
    assert purged >= 2000
    left = {entry for entry, _ in redis.entries(queue_name)} | set(redis.waiting(queue_name))
    assert not left & before
    assert other.stats().enqueued == purged - 2000 + len(left)


def test_large_jobs_are_purged_in_small_pieces(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    for number in range(30):
        queue.enqueue(b"x" * 1_000_000, delay=60 if number % 2 else 0)
    assert queue.purge() == 30
    assert redis.leftovers(queue_name) == []


# ---- pause ----


def test_pause_is_a_field_of_the_settings(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    queue.pause()
    conf = redis.key(queue_name, "conf")
    assert redis.client.hgetall(conf) == {b"version": b"1", b"paused": b"1"}
    assert queue.stats().paused
    queue.enqueue(b"x")
    no_job(queue)
    queue.resume()
    assert set(redis.client.hgetall(conf)) == {b"version", b"visibility"}
    claim(queue, 0).ack()


def test_an_unknown_format_is_not_paused(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    redis.client.hset(redis.key(queue_name, "conf"), "version", "2")
    with pytest.raises(cwist_jq.Error, match="unknown wire format 2"):
        queue.pause()


def test_blocked_claims_wait_on_and_go_on(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """Paused and resumed by another handle; within a second it holds."""
    worker, operator = make_queue(), make_queue()
    blocked = Background(worker.claim, 30)
    eventually(lambda: redis.client.info("clients")["blocked_clients"] > 0)
    operator.pause()
    time.sleep(1.0)
    operator.enqueue(b"meanwhile")
    time.sleep(0.5)
    assert blocked.running
    assert redis.client.info("clients")["blocked_clients"] == 0
    assert redis.claimed(queue_name) == 0
    operator.resume()
    begin = time.monotonic()
    job = blocked.result(5)
    assert job is not None
    assert (job.payload, job.attempts) == (b"meanwhile", 1)
    assert time.monotonic() - begin < 1.0
    job.ack()


def test_what_arrives_meanwhile_is_released(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """A read that was blocked when the pause came brings a job: it goes back, as it was."""
    worker, operator = make_queue(), make_queue()
    blocked = Background(worker.claim, 30)
    eventually(lambda: redis.client.info("clients")["blocked_clients"] > 0)
    operator.pause()
    eventually(lambda: worker.stats().paused)
    time.sleep(0.3)  # the tick has told it, and the read may still be blocked
    job_id = operator.enqueue(b"meanwhile")
    eventually(lambda: redis.claimed(queue_name) == 0 and redis.ready_and_claimed(queue_name) == 1)
    assert blocked.running
    operator.resume()
    job = blocked.result(5)
    assert job is not None
    assert (job.id, job.attempts) == (job_id, 1)


def _claim_and_release(queue: cwist_jq.Queue) -> bool:
    """Whether a claim brought a job."""
    job = queue.claim(0)
    if job is not None:
        job.release()
    return job is not None


def test_a_paused_claim_ends_at_its_deadline(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    queue = make_queue()
    queue.enqueue(b"x")
    claim(queue).release()
    make_queue().pause()
    begin = time.monotonic()
    eventually(lambda: not _claim_and_release(queue), timeout=1.0)
    no_job(queue, timeout=0.5)
    assert 0.4 < time.monotonic() - begin < 2.5
    assert queue.claim_many(10, 0) == []


def test_a_busy_worker_pauses_too(make_queue: MakeQueue) -> None:
    """Whose reads never find the queue empty."""
    queue, operator = make_queue(), make_queue()
    queue.enqueue_many([b"%d" % number for number in range(20_000)])
    jobs = queue.claim_many(1, 1)
    operator.pause()
    end = time.monotonic() + 1.0
    while jobs and time.monotonic() < end:
        jobs = queue.ack_and_claim(jobs, 1, 0)
    assert jobs == []
    assert queue.ack_and_claim([], 1, 0) == []
    left = queue.stats().ready
    assert 0 < left < 20_000
    operator.resume()
    eventually(lambda: _claim_and_release(queue), timeout=1.0)
    assert queue.stats().ready == left


def test_an_idle_paused_worker_is_quiet(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """At most 10 commands a second, as for any idle worker."""
    queue = make_queue()
    no_job(queue)
    queue.pause()

    def calls() -> int:
        stats = redis.client.info("commandstats")
        return sum(
            stats.get(f"cmdstat_{name}", {}).get("calls", 0)
            for name in ("evalsha", "eval", "xreadgroup")
        )

    before = calls()
    no_job(queue, timeout=3)
    assert 3 <= calls() - before <= 33


# ---- consumers that were left behind ----


def _reap_script() -> str:
    """The script as the library sends it."""
    folder = Path(__file__).parents[2] / "csrc" / "redis" / "lua"
    return (folder / "includes" / "call.lua").read_text() + (folder / "reap-1.lua").read_text()


def test_only_consumers_that_hold_nothing_are_reaped(
    make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """L07, M03: a hundred that claimed nothing go; the one that died with ten jobs loses none.

    The library looks once a minute, for those that were silent for a minute or longer. Here its
    script is run all the time, and a tenth of a second is long.
    """
    stream = redis.key(queue_name, "s")
    dead = make_queue(visibility_timeout=0.5, consumer="dead")
    ids = dead.enqueue_many([b"%d" % number for number in range(10)])
    assert len(dead.claim_many(10)) == 10
    for number in range(100):
        redis.client.xgroup_createconsumer(stream, "cwist-jq", f"left-{number}")

    def all_silent() -> bool:
        consumers = redis.client.xinfo_consumers(stream, "cwist-jq")
        return all(consumer["idle"] > 150 for consumer in consumers)

    eventually(all_silent)
    script = _reap_script()

    def reap() -> int:
        return int(redis.client.eval(script, 1, stream, "cwist-jq", 100, 60))

    assert [reap(), reap(), reap()] == [60, 40, 0]
    assert [one["name"] for one in redis.client.xinfo_consumers(stream, "cwist-jq")] == [b"dead"]
    taker = make_queue(visibility_timeout=0.5, consumer="taker")
    found: list[str] = []
    while len(found) < 10:
        job = claim(taker)
        reap()
        found.append(job.id)
        job.ack()
    assert sorted(found) == sorted(ids)
    no_job(taker)
    eventually(reap)
