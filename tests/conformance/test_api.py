"""The Python objects: with blocks, iteration, double settling, closing (SPEC section 7)."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, no_job, only_letter
from tests.observers import Observer


def _ack_and_fail(job: cwist_jq.Job) -> None:
    job.ack()
    raise RuntimeError


def _fail_in_a_loop(queue: cwist_jq.Queue) -> None:
    for job in queue:
        _ack_and_fail(job)


def test_a_with_block_acks_on_a_clean_exit(
    queue: cwist_jq.Queue, observer: Observer, queue_name: str
) -> None:
    queue.enqueue(b"x")
    job = claim(queue)
    with job as entered:
        assert entered is job
        assert observer.claimed(queue_name) == 1
    assert observer.leftovers(queue_name) == []


def test_a_with_block_nacks_with_the_exception_as_reason(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_retries=2)
    queue.enqueue(b"x")
    for attempt in (1, 2):
        job = claim(queue)
        assert job.attempts == attempt
        with pytest.raises(ZeroDivisionError), job:
            print(1 // 0)
    letter = only_letter(observer, queue_name)
    assert letter.cause == "nacked"
    assert letter.reason is not None
    assert letter.reason.startswith("ZeroDivisionError: ")


def test_a_with_block_cuts_a_long_reason_between_characters(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    with pytest.raises(ValueError, match="ü"), claim(queue):
        raise ValueError("ü" * 3000)
    reason = only_letter(observer, queue_name).reason
    assert reason is not None
    assert 4090 < len(reason.encode()) <= 4096
    assert set(reason.removeprefix("ValueError: ")) == {"ü"}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_with_block_releases_when_the_program_is_to_end(
    make_queue: MakeQueue, observer: Observer, queue_name: str, kind: type[BaseException]
) -> None:
    """N05, D09."""
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    with pytest.raises(kind), claim(queue):
        raise kind
    job = claim(queue)
    assert job.attempts == 1
    job.ack()
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("call", ["ack", "nack", "release"])
def test_a_job_settled_in_its_block_is_left_alone(
    make_queue: MakeQueue, observer: Observer, queue_name: str, call: str
) -> None:
    queue = make_queue(max_retries=2)
    queue.enqueue(b"x")
    with claim(queue) as job:
        getattr(job, call)()
    if call != "ack":
        job = claim(queue)
        assert job.attempts == (2 if call == "nack" else 1)
        with pytest.raises(RuntimeError), job:
            _ack_and_fail(job)
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("first", ["ack", "nack", "release"])
@pytest.mark.parametrize("second", ["ack", "nack", "release", "extend"])
def test_a_job_is_settled_once(
    make_queue: MakeQueue, observer: Observer, queue_name: str, first: str, second: str
) -> None:
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    job = claim(queue)
    getattr(job, first)()
    before = observer.ready_and_claimed(queue_name), len(observer.dead(queue_name))
    with pytest.raises(cwist_jq.Closed):
        getattr(job, second)()
    with pytest.raises(cwist_jq.Closed), job:
        pytest.fail("a settled job was entered")
    assert (observer.ready_and_claimed(queue_name), len(observer.dead(queue_name))) == before
    assert (job.payload, job.attempts) == (b"x", 1)


def test_iteration_yields_jobs_and_claims_no_further(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """D06: when the body ends the loop, nothing else is claimed."""
    queue = make_queue()
    for number in range(6):
        queue.enqueue(b"%d" % number)
    seen = []
    for job in queue:
        assert observer.claimed(queue_name) == 1
        with job:
            seen.append(job.payload)
        if len(seen) == 3:
            break
    assert observer.claimed(queue_name) == 0
    seen += [job.payload for job in itertools.islice(queue, 1)]
    with pytest.raises(RuntimeError):
        _fail_in_a_loop(queue)
    assert seen == [b"0", b"1", b"2", b"3"]
    assert observer.claimed(queue_name) == 1
    assert observer.ready_and_claimed(queue_name) == 2


def test_a_dropped_job_comes_back_after_its_lease(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    queue = make_queue(visibility_timeout=1.0)
    queue.enqueue(b"x")
    job: cwist_jq.Job | None = claim(queue)
    del job
    gc.collect()
    no_job(queue)
    assert observer.claimed(queue_name) == 1
    assert claim(queue).attempts == 2


def test_a_closed_queue_says_so(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """F08."""
    queue = make_queue()
    queue.enqueue(b"x")
    job = claim(queue)
    queue.close()
    queue.close()
    assert queue.closed
    for call in (
        lambda: queue.enqueue(b"y"),
        lambda: queue.claim(0),
        queue.dead_count,
        queue.interrupt,
        lambda: next(iter(queue)),
        job.extend,
        job.ack,
        queue.__enter__,
    ):
        with pytest.raises(cwist_jq.Closed):
            call()
    assert job.payload == b"x"
    assert observer.ready_and_claimed(queue_name) == 1


def test_a_closed_connection_closes_its_queues(url: str, queue_name: str) -> None:
    """F08."""
    conn = cwist_jq.connect(url)
    queue = conn.queue(queue_name)
    assert (conn.closed, queue.closed) == (False, False)
    conn.close()
    conn.close()
    assert (conn.closed, queue.closed) == (True, True)
    with pytest.raises(cwist_jq.Closed):
        conn.queue(queue_name)
    with pytest.raises(cwist_jq.Closed):
        queue.enqueue(b"x")
    with pytest.raises(cwist_jq.Closed), conn:
        pytest.fail("a closed connection was entered")


def test_with_blocks_close(url: str, queue_name: str) -> None:
    with cwist_jq.connect(url) as conn, conn.queue(queue_name) as queue:
        queue.enqueue(b"x")
        drain(queue, 1)
    assert (conn.closed, queue.closed) == (True, True)


def test_queues_of_one_connection_are_apart(conn: Any, queue_name: str) -> None:
    """Closing one handle leaves another one of the same queue alone."""
    first, second = conn.queue(queue_name), conn.queue(queue_name)
    first.enqueue(b"x")
    job = claim(second)
    first.close()
    job.ack()
    second.enqueue(b"y")
    assert [one.payload for one in drain(second, 1)] == [b"y"]
    second.close()


def test_the_url_may_come_from_the_environment(
    url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CWIST_JQ_URL", url)
    with cwist_jq.connect() as conn, conn.queue(queue_name) as queue:
        queue.enqueue(b"x")
        drain(queue, 1)
    monkeypatch.delenv("CWIST_JQ_URL")
    with pytest.raises(cwist_jq.InvalidParam, match="CWIST_JQ_URL"):
        cwist_jq.connect()


def test_errors_name_operation_queue_and_server(
    make_queue: MakeQueue, queue_name: str, url: str
) -> None:
    queue = make_queue(visibility_timeout=0.2)
    queue.enqueue(b"x")
    old = claim(queue)
    new = claim(queue)
    with pytest.raises(cwist_jq.LeaseLost) as caught:
        old.ack()
    text = str(caught.value)
    assert text.startswith(f"ack on queue {queue_name} at ")
    assert url.split("//")[1] in text
    assert "\n" not in text
    assert (caught.value.code, caught.value.text) == (-21, text)
    new.ack()
