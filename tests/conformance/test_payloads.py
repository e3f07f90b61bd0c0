"""Any bytes, of any size up to the limit, exactly as they were (SPEC section 5, cases P01, P02)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, bytes_of, claim, digest, drain, no_job, only_letter
from tests.observers import Observer

KIB = 1024
MIB = 1024 * 1024

#: What NATS keeps free of max_payload, so that every job can become a dead letter.
SPARE = 16384

#: The limit of a NATS server that is set up with the defaults.
NATS_LIMIT = MIB - SPARE

EXACT = {
    "empty": b"",
    "nul": b"\x00",
    "nul-inside": b"a\x00b",
    "crlf": b"\r\n",
    "protocol": b"$3\r\nfoo\r\n*1\r\nPUB x 1\r\n",
    "not-utf-8": b"\xff\xfe\xc3\x28",
    "all-bytes": bytes(range(256)),
    "all-pairs": bytes(i for n in range(256) for i in (n, 255 - n)),
}


@pytest.mark.parametrize("payload", EXACT.values(), ids=EXACT)
def test_bytes_are_exact(
    make_queue: MakeQueue, observer: Observer, queue_name: str, payload: bytes
) -> None:
    """P01: through a first delivery, a nack with and without delay, a release, and death."""
    queue = make_queue(max_retries=3)
    slow = make_queue(max_retries=3, retry_delay=0.02)
    queue.enqueue(payload, type="t")
    for worker, settle in ((queue, "nack"), (queue, "release"), (slow, "nack"), (queue, "nack")):
        job = claim(worker)
        assert job.payload == payload
        getattr(job, settle)()
    assert only_letter(observer, queue_name).payload == payload


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_contiguous_buffer_is_taken(
    queue: cwist_jq.Queue, kind: Callable[[bytes], Any]
) -> None:
    queue.enqueue(kind(bytes(range(256))))
    queue.enqueue(kind(b""))
    assert [job.payload for job in drain(queue, 2)] == [bytes(range(256)), b""]


@pytest.mark.parametrize(
    "payload", ["text", None, 7, [1, 2], memoryview(b"abcdef")[::2]], ids=lambda p: type(p).__name__
)
def test_what_is_no_buffer_is_refused(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str, payload: Any
) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match="payload"):
        queue.enqueue(payload)
    assert observer.ready_and_claimed(queue_name) == 0


@pytest.mark.parametrize("size", [0, 1, 255, 4 * KIB - 1, 4 * KIB, 64 * KIB, NATS_LIMIT])
def test_sizes_up_to_the_limit_of_every_server(
    make_queue: MakeQueue, observer: Observer, queue_name: str, size: int
) -> None:
    """P02."""
    queue = make_queue(max_retries=2)
    payload = bytes_of(size)
    queue.enqueue(payload)
    job = claim(queue)
    assert digest(job.payload) == digest(payload)
    job.nack()
    job = claim(queue)
    assert digest(job.payload) == digest(payload)
    job.nack("the longest reason: " + "r" * 1000)
    letter = only_letter(observer, queue_name)
    assert letter.payload is not None
    assert digest(letter.payload) == digest(payload)


def test_jobs_of_all_sizes_survive_restarts(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Observer],
    engine: str,
    queue_name: str,
) -> None:
    """P02: ready, nacked and dead, through a server that was stopped and started again."""
    options = {"appendonly": "everysec"} if engine == "redis" else {"max_payload": 8 * MIB}
    server = make_server(**options)
    sizes = (0, 1, 4 * KIB, MIB - 1, MIB, 7 * MIB)
    # NATS forgets at a restart that a job was nacked: it comes back after the visibility then.
    with cwist_jq.connect(server.url) as conn:
        queue = conn.queue(queue_name, max_retries=2, visibility_timeout=2)
        sums = {}
        for size in sizes:
            payload = bytes_of(size, 3)
            sums[queue.enqueue(payload, type=str(size))] = (digest(payload), str(size))
        server.restart()
        jobs = [claim(queue) for _ in sizes]
        assert {job.id: (digest(job.payload), job.type) for job in jobs} == sums
        for job in jobs:
            job.nack()
        server.restart()
        for number in range(len(sizes)):
            job = claim(queue)
            assert ((digest(job.payload), job.type), job.attempts) == (sums[job.id], 2)
            job.nack(f"restart {number}")
        server.restart()
        letters = make_observer(engine, server.url).dead(queue_name)
        assert {
            letter.id: (digest(letter.payload or b""), letter.type) for letter in letters
        } == sums
        assert {letter.attempts for letter in letters} == {2}
        assert queue.dead_count() == len(sizes)
        no_job(queue)


@pytest.mark.engine("redis")
def test_64_mebibytes_on_redis(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """P02."""
    queue = make_queue(max_retries=2)
    payload = bytes_of(64 * MIB)
    queue.enqueue(payload)
    job = claim(queue)
    assert job.payload == payload
    job.nack()
    job = claim(queue)
    assert job.payload == payload
    job.nack()
    assert only_letter(observer, queue_name).payload == payload
    observer.wipe(queue_name)


@pytest.mark.engine("redis")
def test_more_than_redis_takes_is_refused_before_it_is_sent(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Observer],
    queue_name: str,
) -> None:
    """P02: the limit is the server's own, and stands in the text."""
    server = make_server(config={"proto-max-bulk-len": 2 * MIB})
    with cwist_jq.connect(server.url) as conn:
        queue = conn.queue(queue_name)
        queue.enqueue(bytes_of(2 * MIB))
        with pytest.raises(cwist_jq.TooLarge, match=str(2 * MIB)):
            queue.enqueue(bytes_of(2 * MIB + 1))
        assert make_observer("redis", server.url).ready_and_claimed(queue_name) == 1
        (job,) = drain(queue, 1)
        assert digest(job.payload) == digest(bytes_of(2 * MIB))


@pytest.mark.engine("nats")
def test_one_byte_more_than_nats_takes_is_refused(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """P04: before it is sent, with the limit; the connection is not cut and the type counts too."""
    queue = make_queue()
    other = queue.enqueue(b"held")
    held = claim(queue)
    for kind in (None, "t", "é" * 127):
        spare = 0 if kind is None else len(kind.encode())
        with pytest.raises(cwist_jq.TooLarge, match=str(NATS_LIMIT)):
            queue.enqueue(bytes_of(NATS_LIMIT + 1 - spare), type=kind)
        with pytest.raises(cwist_jq.TooLarge, match=str(NATS_LIMIT)):
            queue.enqueue(bytes_of(20 * MIB), type=kind)
    assert observer.ready_and_claimed(queue_name) == 1
    assert held.id == other
    held.ack()


@pytest.mark.engine("nats")
def test_the_largest_job_of_nats_can_be_released_and_can_die(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """The room kept free holds all headers that a copy and a dead letter need."""
    queue = make_queue(max_retries=1, consumer="c" * 128)
    payload = bytes_of(NATS_LIMIT - 300)
    queue.enqueue(payload, type="é" * 127)
    claim(queue).release()
    job = claim(queue)
    assert digest(job.payload) == digest(payload)
    job.nack("ü" * 512)
    letter = only_letter(observer, queue_name)
    assert (letter.payload, letter.reason, letter.type) == (payload, "ü" * 512, "é" * 127)
    assert letter.consumer == "c" * 128
