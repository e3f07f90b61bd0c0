"""Headers: they live as long as the job, whatever happens to it (SPEC rule 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq import Item
from tests.conformance.helpers import MakeQueue, bytes_of, claim, delays, drain, give_away
from tests.observers import NatsObserver, Observer, RedisObserver

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
HEADERS = {
    "traceparent": TRACE,
    "X-Empty": "",
    "Lang": "grüße, 日本",
    "a": "small",
    "A": "large",
    "Colon": "a: b, c=d; %41 \\ \"'",
    "0": "inner  spaces",
}


def test_headers_reach_the_worker(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    queue.enqueue(b"with", type="t", headers=HEADERS)
    queue.enqueue(b"without")
    job = claim(queue)
    assert (job.payload, job.type) == (b"with", "t")
    assert job.headers == HEADERS
    assert job.headers["traceparent"] == TRACE
    job.ack()
    other = claim(queue)
    assert (other.payload, dict(other.headers)) == (b"without", {})
    other.ack()
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("size", [10, 100_000])
def test_headers_can_be_read_after_the_end(queue: cwist_jq.Queue, size: int) -> None:
    """Of a small and of a large payload, claimed one by one or together."""
    items = [Item(bytes_of(size, n), headers={"N": str(n)} if n else None) for n in range(4)]
    queue.enqueue_many(items)
    single = claim(queue)
    single.ack()
    rest = queue.claim_many(10, 5)
    queue.ack_many(rest)
    found = [dict(job.headers) for job in [single, *rest]]
    assert found == [{}, {"N": "1"}, {"N": "2"}, {"N": "3"}]


def _die_and_come_back(queue: cwist_jq.Queue) -> None:
    claim(queue).nack(dead=True)
    queue.dead.requeue_all()


MOVES: dict[str, Callable[[cwist_jq.Queue], Any]] = {
    "retry": lambda queue: claim(queue).nack(),
    "retry later": lambda queue: claim(queue).nack(delay=0.1),
    "release": lambda queue: claim(queue).release(),
    "put off": lambda queue: claim(queue).release(0.1),
    "lapse": lambda queue: give_away(queue)[1].nack(),
    "death": _die_and_come_back,
    "nack_many": lambda queue: queue.nack_many(queue.claim_many(1, 5)),
    "release_many": lambda queue: queue.release_many(queue.claim_many(1, 5)),
}


@pytest.mark.parametrize("move", MOVES)
def test_headers_stay_over_every_move(
    make_queue: MakeQueue, observer: Observer, queue_name: str, move: str
) -> None:
    queue = make_queue(visibility_timeout=0.4)
    if move == "put off" and not delays(queue, observer):
        return
    payload = bytes_of(5000)
    job_id = queue.enqueue(payload, type="t", headers=HEADERS)
    for _ in range(2):
        MOVES[move](queue)
    job = claim(queue)
    assert (job.id, job.type, job.payload) == (job_id, "t", payload)
    assert job.headers == HEADERS
    job.ack()
    assert observer.leftovers(queue_name) == []


def test_a_dead_letter_has_the_headers(queue: cwist_jq.Queue) -> None:
    job_id = queue.enqueue(b"x", headers=HEADERS)
    queue.enqueue(b"y")
    claim(queue).nack(dead=True)
    claim(queue).nack(dead=True)
    bare, letter = queue.dead.page()
    assert letter.headers == HEADERS
    assert bare.headers == {}
    assert queue.dead.read(job_id).headers == HEADERS


@pytest.mark.parametrize("values", [300, 2048])
def test_as_many_and_as_long_as_they_may_be(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, values: int
) -> None:
    """On NATS less of them together, so that they fit into a dead letter with a long reason."""
    headers = {f"n{number:03}".ljust(128, "x"): "é" * values for number in range(64)}
    if observer.engine == "nats" and values == 2048:
        with pytest.raises(cwist_jq.TooLarge, match="headers"):
            queue.enqueue(b"", headers=headers)
        assert observer.ready_and_claimed(queue_name) == 0
        return
    job_id = queue.enqueue(b"", headers=headers)
    claim(queue).nack("ü" * 2048, dead=True)
    assert queue.dead.read(job_id).headers == headers
    queue.dead.requeue(job_id)
    queue.enqueue_many([Item(b"", headers=headers), Item(b"", headers={"a": "b"})])
    found = [job.headers for job in drain(queue, 3)]
    assert found == [headers, headers, {"a": "b"}]
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "x"),
        ("n" * 129, "x"),
        ("a_b", "x"),
        ("a b", "x"),
        ("a:b", "x"),
        ("ü", "x"),
        ("Nats-Rollup", "all"),
        ("nats-rollup", "all"),
        ("Cwist-Id", "1"),
        ("CWIST-", "1"),
        ("a", "x" * 4097),
        ("a", "line\nbreak"),
        ("a", "line\rbreak"),
        ("a", "\x7f"),
        ("a", " x"),
        ("a", "x "),
        ("a", "\ud800"),
    ],
)
def test_wrong_headers_are_refused(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, name: str, value: str
) -> None:
    """A publisher's Nats-Rollup could wipe a stream."""
    headers = {"good": "1", name: value}
    with pytest.raises(cwist_jq.InvalidParam, match="headers"):
        queue.enqueue(b"x", headers=headers)
    with pytest.raises(cwist_jq.InvalidParam, match=r"items\[1\].*headers"):
        queue.enqueue_many([b"plain", Item(b"x", headers=headers)])
    assert observer.ready_and_claimed(queue_name) == 0


@pytest.mark.engine("nats")
def test_headers_of_other_publishers(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    """All but those of the server and ours; they stay over a release, too."""
    queue.enqueue(b"x")
    drain(queue, 1)

    async def publish(js: Any) -> None:
        headers = {"X-Foreign": "yes", "Nats-Msg-Id": "7", "Cwist-Type": "t"}
        await js.publish(f"{nats.stream(queue_name)}.jobs", b"f", headers=headers)

    nats.ask(publish)
    for _ in range(2):
        job = claim(queue)
        assert (job.type, dict(job.headers)) == ("t", {"X-Foreign": "yes"})
        job.release()
    drain(queue, 1)


@pytest.mark.engine("redis")
def test_headers_by_other_clients(
    queue: cwist_jq.Queue, redis: RedisObserver, queue_name: str
) -> None:
    """A field h:Name is a header; other fields that we do not know are none."""
    fields: dict[Any, Any] = {"type": "t", "payload": "f", "h:X-Foreign": "yes", "other": "1"}
    redis.client.xadd(redis.key(queue_name, "s"), fields)
    for _ in range(2):
        job = claim(queue)
        assert (job.type, dict(job.headers)) == ("t", {"X-Foreign": "yes"})
        job.nack()
    drain(queue, 1)
    assert redis.leftovers(queue_name) == []
