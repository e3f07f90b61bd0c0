"""Dead letters on Redis: pages, look-ups, moves, and what other clients left in the list."""

from __future__ import annotations

import hashlib
import struct
import threading
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, only_letter
from tests.observers import RedisObserver

pytestmark = pytest.mark.engine("redis")


def _older(kind: bytes, spent: int, payload: bytes) -> bytes:
    return struct.pack(">II", len(kind), spent) + kind + payload


def _bury(queue: cwist_jq.Queue, count: int, type: str | None = None) -> list[str]:
    """Makes dead letters, most of them in the same millisecond; their ids, oldest first."""
    ids = queue.enqueue_many([b"%d" % number for number in range(count)], type=type)
    while jobs := queue.claim_many(100, 0):
        queue.nack_many(jobs)
    return ids


@pytest.fixture
def dying(make_queue: MakeQueue) -> cwist_jq.Queue:
    """A queue whose jobs die with the first nack."""
    return make_queue(max_retries=1)


def _places(redis: RedisObserver, name: str) -> list[tuple[int, int]]:
    """The places of the records, as the wire format has them."""
    found = []
    for record in redis.client.lrange(redis.key(name, "dead"), 0, -1):
        at = 1
        for _ in range(6):
            at += 4 + int(struct.unpack_from(">I", record, at)[0])
        (size,) = struct.unpack_from(">I", record, at)
        ms, _, number = record[at + 4 : at + 4 + size].partition(b"-")
        found.append((int(ms), int(number or 0)))
    return found


def test_places_grow_along_the_list(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Each record has a place of its own, also in the same millisecond."""
    ids = _bury(dying, 300)
    assert [letter.id for letter in redis.dead(queue_name)] == ids
    places = _places(redis, queue_name)
    assert places == sorted(set(places))
    assert len({ms for ms, _ in places}) < 300


def test_places_go_on_when_the_clock_goes_back(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    (first,) = _bury(dying, 1)
    (record,) = redis.client.lrange(redis.key(queue_name, "dead"), 0, -1)
    ((ms, _),) = _places(redis, queue_name)
    size = struct.pack(">I", 13)  # the id begins with a time too, perhaps with the same one
    later = record.replace(size + str(ms).encode(), size + b"9999999999999")
    redis.client.lset(redis.key(queue_name, "dead"), 0, later)
    (second,) = _bury(dying, 1)
    assert _places(redis, queue_name) == [(9999999999999, 0), (9999999999999, 1)]
    assert [letter.id for letter in dying.dead] == [second, first]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_shift_no_letter(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str, order: str
) -> None:
    """Letters come and go between two pages, the marked one too."""
    oldest_first = order == "oldest"
    ids = _bury(dying, 100)
    dead = dying.dead
    seen: list[str] = []
    gone: set[str] = set()
    page = dead.page(10, oldest_first=oldest_first)
    while True:
        seen += [letter.id for letter in page]
        if page.mark is None:
            break
        # The last of the page, one before it, and one that is still to come.
        rest = [one for one in ids if one not in seen and one not in gone]
        for victim in {page[-1].id, page[4].id, *rest[1:2]}:
            dead.purge(victim)
            gone.add(victim)
        _bury(dying, 2)
        page = dead.page(10, oldest_first=oldest_first, after=page.mark)
    assert len(seen) == len(set(seen))
    expected = [one for one in ids if one in seen or one not in gone]
    found = [one for one in seen if one in ids]
    assert found == (expected if oldest_first else expected[::-1])


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_a_page_behind_a_mark_far_away(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str, order: str
) -> None:
    """Thousands were removed: the script is called until it has found the place."""
    oldest_first = order == "oldest"
    ids = _bury(dying, 4000)
    dead = dying.dead
    page = dead.page(1000, oldest_first=oldest_first)
    page = dead.page(1000, oldest_first=oldest_first, after=page.mark)
    redis.client.ltrim(redis.key(queue_name, "dead"), 1500, -1)
    page = dead.page(1000, oldest_first=oldest_first, after=page.mark)
    left = ids[1500:]
    expected = ids[2000:3000] if oldest_first else left[:500][::-1]
    assert [letter.id for letter in page] == expected


@pytest.mark.parametrize("mark", ["x", "1", "1.", ".1", "1.1.1", "-1.1", "deadbeef.1", "1-2-3.4"])
def test_a_mark_that_is_none(dying: cwist_jq.Queue, mark: str) -> None:
    _bury(dying, 1)
    with pytest.raises(cwist_jq.InvalidParam, match="mark"):
        dying.dead.page(after=mark)


def test_what_is_told(dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str) -> None:
    job_id = dying.enqueue(b"P\x00", type="T", headers={"h": "1"})
    claim(dying).nack("why\nnot", dead=True)
    (listed,) = dying.dead
    read = dying.dead.read(job_id)
    letter = only_letter(redis, queue_name)
    for told in (listed, read):
        assert (told.id, told.type, told.size, told.cause) == (job_id, "T", 2, "rejected")
        assert (told.reason, told.attempts, dict(told.headers)) == ("why\nnot", 1, {"h": "1"})
        assert told.first_time is not None
        assert told.death_time is not None
        assert round(told.first_time.timestamp() * 1000) == letter.first_ms
        assert round(told.death_time.timestamp() * 1000) == letter.last_ms
        assert told.consumer == letter.consumer
    assert (listed.payload, read.payload) == (None, b"P\x00")
    with pytest.raises(cwist_jq.NotFound):
        dying.dead.read("1-1")


def test_a_letter_deep_in_the_list(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """A look-up walks the list in pieces of 1000."""
    ids = _bury(dying, 3500)
    assert dying.dead.read(ids[0]).payload == b"0"
    dying.dead.requeue(ids[1])
    dying.dead.purge(ids[0])
    assert redis.entries(queue_name)[0][1][b"cwist-id"] == ids[1].encode()
    assert [letter.id for letter in redis.dead(queue_name)] == ids[2:]
    assert redis.client.hlen(redis.key(queue_name, "deadbody")) == 3498


def test_a_requeue_writes_an_entry_and_removes_the_record(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    redis.client.xadd(
        redis.key(queue_name, "s"), {"type": "T", "payload": "P", "x": b"\xff", "h:a": "1"}
    )
    job = claim(dying)
    job.nack()
    dying.dead.requeue(job.id)
    ((_, fields),) = redis.entries(queue_name)
    assert list(fields.items()) == [
        (b"type", b"T"),
        (b"payload", b"P"),
        (b"cwist-id", job.id.encode()),
        (b"x", b"\xff"),
        (b"h:a", b"1"),
    ]
    with pytest.raises(cwist_jq.NotFound):
        dying.dead.requeue(job.id)
    assert drain(dying, 1)[0].attempts == 1
    assert redis.leftovers(queue_name) == []


def test_two_operators_double_nothing(
    dying: cwist_jq.Queue, make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    """CASES A8: each letter is moved once, whoever asks."""
    ids = _bury(dying, 600)
    moved: list[int] = []

    def operate() -> None:
        moved.append(make_queue().dead.requeue_all())

    threads = [threading.Thread(target=operate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(moved) == 600
    found = sorted(fields[b"cwist-id"].decode() for _, fields in redis.entries(queue_name))
    assert found == sorted(ids)
    assert redis.keys(queue_name) == ["conf", "s"]


def test_a_full_queue_takes_no_letter_back(
    dying: cwist_jq.Queue, make_queue: MakeQueue, redis: RedisObserver, queue_name: str
) -> None:
    (dead,) = _bury(dying, 1)
    limited = make_queue(max_length=2)
    limited.enqueue(b"ready")
    limited.enqueue(b"delayed", delay=60)
    with pytest.raises(cwist_jq.QueueFull):
        limited.dead.requeue(dead)
    assert only_letter(redis, queue_name).payload == b"0"
    drain(dying, 1)
    limited.dead.requeue(dead)
    assert limited.dead_count() == 0


def test_a_malformed_letter_keeps_what_is_wrong_with_it(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """Requeued, it is malformed again; what was wrong with our own fields is forgiven."""
    stream = redis.key(queue_name, "s")
    broken = redis.client.xadd(stream, {"type": b"\xff", "body": "B"}).decode()
    counted = redis.client.xadd(stream, {"payload": "P", "cwist-attempts": "many"}).decode()
    assert dying.claim(0) is None
    assert [letter.cause for letter in dying.dead] == ["malformed", "malformed"]
    assert dying.dead.read(broken).payload in (None, b"")
    assert dying.dead.requeue_all() == 2
    (job,) = dying.claim_many(10, 0)
    assert (job.id, job.payload, job.attempts) == (counted, b"P", 1)
    letter = only_letter(redis, queue_name)
    assert (letter.id, letter.cause) == (broken, "malformed")
    assert letter.others == {"type": b"\xff", "cwist-id": broken.encode(), "body": b"B"}
    job.ack()


# ---- elements of older clients, and of nobody ----


def _put(redis: RedisObserver, name: str, *elements: bytes) -> list[str]:
    redis.client.rpush(redis.key(name, "dead"), *elements)
    return [f"cwist-{hashlib.sha1(one).hexdigest()}" for one in elements]


def test_older_elements_are_listed_and_moved(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    elements = [_older(b"mail", 5, b"\x00old"), _older(b"", 1, b""), b"\xc1junk", b"??"]
    ids = _put(redis, queue_name, *elements)
    (own,) = _bury(dying, 1)
    assert [letter.id for letter in dying.dead] == [own, *ids[::-1]]
    letters = [dying.dead.read(one) for one in ids]
    told = [(one.type, one.attempts, one.cause, one.payload) for one in letters]
    assert told == [
        ("mail", 5, "nacked", b"\x00old"),
        (None, 1, "nacked", b""),
        (None, 0, "malformed", b"\xc1junk"),
        (None, 0, "malformed", b"??"),
    ]
    assert all(one.first_time is one.death_time is None for one in letters)
    assert [one.size for one in dying.dead.page(oldest_first=True)] == [4, 0, 5, 2, 1]
    dying.dead.purge(ids[1])
    dying.dead.requeue(ids[0])
    (job,) = drain(dying, 1)
    assert (job.type, job.payload, job.attempts) == ("mail", b"\x00old", 1)
    dying.dead.requeue(ids[2])
    assert dying.claim(0) is None
    (newest,) = dying.dead.page(1)
    assert (newest.cause, newest.payload) == ("malformed", None)
    record = redis.client.lindex(redis.key(queue_name, "dead"), -1)
    assert record.endswith(b"\x00\x00\x00\x0acwist-dead\x00\x00\x00\x05\xc1junk")
    with pytest.raises(cwist_jq.NotFound):
        dying.dead.read(ids[2])


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_of_older_elements(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str, order: str
) -> None:
    """They have no place: some may come twice when others go, and none is passed over."""
    oldest_first = order == "oldest"
    ids = _put(redis, queue_name, *(_older(b"", 1, b"%d" % number) for number in range(50)))
    page = dying.dead.page(7, oldest_first=oldest_first)
    seen: list[Any] = [letter.id for letter in page]
    dying.dead.purge(seen[-1])
    dying.dead.purge(seen[2])
    while page.mark is not None:
        page = dying.dead.page(7, oldest_first=oldest_first, after=page.mark)
        seen += [letter.id for letter in page]
    assert set(seen) == set(ids)


def test_all_older_elements_are_purged(
    dying: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    _put(redis, queue_name, *(_older(b"", 1, b"%d" % number) for number in range(700)))
    assert dying.dead.purge_all() == 700
    assert redis.keys(queue_name) == []
