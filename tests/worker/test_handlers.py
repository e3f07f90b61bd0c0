"""What handlers get, and what becomes of their jobs: in threads and on the loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq.worker import Middleware, Reject, Retry, Snooze, Worker, enqueue_json
from tests.conformance.helpers import MakeQueue, only_letter
from tests.observers import NatsObserver, Observer
from tests.waiting import eventually
from tests.worker.helpers import is_done, running

pytestmark = pytest.mark.servers("all")

Decorated = Callable[[Callable[..., Any]], Any]


@pytest.fixture(params=["sync", "async"])
def register(request: pytest.FixtureRequest) -> Callable[[Worker, str, Callable[..., Any]], None]:
    """Registers a function as it is, or as a coroutine."""

    def plain(worker: Worker, kind: str, function: Callable[..., Any]) -> None:
        worker.handler(kind)(function)

    def wrapped(worker: Worker, kind: str, function: Callable[..., Any]) -> None:
        @worker.handler(kind)
        async def handler(data: Any, job: Any) -> Any:
            await asyncio.sleep(0)
            return function(data, job)

    return plain if request.param == "sync" else wrapped


Register = Callable[[Worker, str, Callable[..., Any]], None]


def test_a_handler_gets_the_data_and_the_job(
    conn: cwist_jq.Connection,
    queue: cwist_jq.Queue,
    observer: Observer,
    register: Register,
) -> None:
    seen: list[Any] = []

    def welcome(data: Any, job: cwist_jq.Job) -> None:
        seen.append((data, job.id, job.type, job.attempts, dict(job.headers)))

    worker = Worker(conn, queue.name)
    register(worker, "welcome", welcome)
    job_id = enqueue_json(queue, {"to": "ä@b.co", "n": [1, None]}, type="welcome")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert seen == [({"to": "ä@b.co", "n": [1, None]}, job_id, "welcome", 1, {})]
    assert observer.leftovers(queue.name) == []


def test_all_jobs_are_done_once(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    """More of them than are ever claimed at once."""
    seen: list[Any] = []
    worker = Worker(conn, queue.name, concurrency=4)
    register(worker, "t", lambda data, job: seen.append((job.id, job.attempts)))
    ids = queue.enqueue_many([b"{}"] * 5000, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name), timeout=30)
    assert sorted(seen) == sorted((job_id, 1) for job_id in ids)
    assert observer.leftovers(queue.name) == []


def test_an_exception_is_a_retry(
    conn: cwist_jq.Connection,
    queue: cwist_jq.Queue,
    observer: Observer,
    register: Register,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """X03: the attempt is told each time, and so is the end."""
    attempts = []

    def fail(data: Any, job: cwist_jq.Job) -> None:
        attempts.append(job.attempts)
        raise ValueError("no such luck")

    worker = Worker(conn, queue.name, queue_options={"max_retries": 3})
    register(worker, "t", fail)
    job_id = enqueue_json(queue, 1, type="t")
    with caplog.at_level(logging.INFO, "cwist_jq.worker"), running(worker):
        eventually(lambda: observer.dead(queue.name))
    assert attempts == [1, 2, 3]
    letter = only_letter(observer, queue.name)
    assert (letter.id, letter.cause, letter.reason) == (
        job_id,
        "nacked",
        "ValueError: no such luck",
    )
    told = [record for record in caplog.records if hasattr(record, "job_id")]
    assert [(record.levelname, record.attempt) for record in told] == [  # type: ignore[attr-defined]
        ("WARNING", 1),
        ("WARNING", 2),
        ("ERROR", 3),
    ]
    for record in told:
        facts = vars(record)
        assert (facts["queue"], facts["job_id"], facts["job_type"]) == (queue.name, job_id, "t")
        assert job_id in record.getMessage()
        assert record.exc_info is not None


def test_a_retry_of_its_own_delay(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    times = []

    def busy(data: Any, job: cwist_jq.Job) -> None:
        times.append((time.monotonic(), job.attempts))
        if job.attempts == 1:
            raise Retry(0.5, "busy")

    worker = Worker(conn, queue.name)
    register(worker, "t", busy)
    enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(lambda: len(times) == 2)
        eventually(is_done(observer, queue.name))
    (first, _), (second, attempts) = times
    assert second - first >= 0.45
    assert attempts == 2


def test_what_is_rejected_is_dead_at_once(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    attempts = []

    def reject(data: Any, job: cwist_jq.Job) -> None:
        attempts.append(job.attempts)
        raise Reject("there is no such customer")

    worker = Worker(conn, queue.name)
    register(worker, "t", reject)
    enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(lambda: observer.dead(queue.name))
    letter = only_letter(observer, queue.name)
    assert (letter.cause, letter.reason) == ("rejected", "there is no such customer")
    assert attempts == [1]


@pytest.mark.parametrize("payload", [b"\xff\xfe{", b"{", b"[" * 100_000])
def test_what_cannot_be_read_is_rejected(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, payload: bytes
) -> None:
    """P01: a payload that no handler can read harms nothing else."""
    seen: list[Any] = []
    worker = Worker(conn, queue.name)
    worker.handler("t")(seen.append)
    queue.enqueue(payload, type="t")
    enqueue_json(queue, "good", type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert seen == ["good"]
    letter = only_letter(observer, queue.name)
    assert (letter.cause, letter.payload) == ("rejected", payload)
    assert letter.reason is not None
    assert letter.reason.startswith("the payload cannot be read: ")


def test_a_type_without_a_handler_is_a_failure(
    conn: cwist_jq.Connection, make_queue: MakeQueue, observer: Observer
) -> None:
    queue = make_queue(max_retries=2)
    worker = Worker(conn, queue)
    worker.handler("t")(lambda data: None)
    queue.enqueue(b"{}", type="other")
    queue.enqueue(b"{}", type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    letter = only_letter(observer, queue.name)
    assert (letter.attempts, letter.reason) == (2, "no handler for jobs of type other")


def test_a_handler_for_all_others(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    seen: list[Any] = []
    worker = Worker(conn, queue.name, concurrency=1)

    @worker.handler
    def others(payload: bytes, job: cwist_jq.Job) -> None:
        seen.append((job.type, payload))

    worker.handler("t")(lambda data: seen.append(("t", data)))
    for kind, payload in (("a", b"\x00"), (None, b"1"), ("t", b"2")):
        queue.enqueue(payload, type=kind)
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert seen == [("a", b"\x00"), (None, b"1"), ("t", 2)]


def test_a_handler_that_leaves_has_failed(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    """sys.exit() and the like end no thread and no loop."""
    seen: list[Any] = []

    def leave(data: Any, job: cwist_jq.Job) -> None:
        if data == 1 and job.attempts == 1:
            sys.exit("leaving")
        seen.append(data)

    worker = Worker(conn, queue.name, concurrency=1)
    register(worker, "t", leave)
    for number in (1, 2):
        enqueue_json(queue, number, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert sorted(seen) == [1, 2]


def test_a_handler_may_settle_its_job(
    conn: cwist_jq.Connection,
    queue: cwist_jq.Queue,
    observer: Observer,
    register: Register,
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker(conn, queue.name)
    register(worker, "t", lambda data, job: job.ack())
    enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_large_payload(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    seen: list[Any] = []
    worker = Worker(conn, queue.name)
    register(worker, "t", lambda data, job: seen.append(len(data)))
    for size in (10, 10_000, 300_000):
        enqueue_json(queue, "x" * size, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert sorted(seen) == [10, 10_000, 300_000]


def test_sync_and_async_handlers_side_by_side(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    threads: dict[str, set[str]] = {"sync": set(), "async": set()}
    worker = Worker(conn, queue.name, concurrency=3)

    @worker.handler("sync")
    def sync(data: Any) -> None:
        threads["sync"].add(threading.current_thread().name)

    @worker.handler("async")
    async def coroutine(data: Any) -> None:
        threads["async"].add(threading.current_thread().name)

    for _ in range(300):
        queue.enqueue(b"", type="sync")
        queue.enqueue(b"", type="async")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert threads["async"] == {"cwist_jq loop"}
    assert threads["sync"] <= {f"cwist_jq handler {number}" for number in (1, 2, 3)}


@pytest.mark.servers("pinned")
def test_each_job_has_a_context_of_its_own(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
    found = []

    def handler(data: Any, job: cwist_jq.Job) -> None:
        found.append(variable.get(0))
        variable.set(1)

    worker = Worker(conn, queue.name, concurrency=1)
    register(worker, "t", handler)
    for _ in range(3):
        enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert found == [0, 0, 0]


class Recorder(Middleware):
    """Writes down what it sees."""

    error: type[BaseException] = RuntimeError

    def __init__(self, name: str, into: list[tuple[str, ...]]) -> None:
        self.name = name
        self.into = into

    def before(self, job: cwist_jq.Job) -> None:
        self.into.append((self.name, "before", job.id))

    def after(self, job: cwist_jq.Job) -> None:
        self.into.append((self.name, "after", job.id))
        raise self.error("is only logged")

    def failed(self, job: cwist_jq.Job, error: BaseException) -> None:
        self.into.append((self.name, "failed", job.id, type(error).__name__))
        raise self.error("is only logged")


@pytest.mark.servers("pinned")
def test_middleware_runs_around_handlers(
    conn: cwist_jq.Connection, make_queue: MakeQueue, observer: Observer, register: Register
) -> None:
    queue = make_queue(max_retries=1)
    found: list[tuple[str, ...]] = []
    chain = [Recorder("outer", found), Recorder("inner", found)]
    worker = Worker(conn, queue, middleware=chain)

    def handler(data: Any, job: cwist_jq.Job) -> None:
        found.append(("handler", job.id))
        if data == "bad":
            raise ValueError

    register(worker, "t", handler)
    for data in ("good", "bad"):
        found.clear()
        job_id = enqueue_json(queue, data, type="t")
        with running(worker):
            eventually(is_done(observer, queue.name))
        last = ("after",) if data == "good" else ("failed",)
        more = () if data == "good" else ("ValueError",)
        assert found == [
            ("outer", "before", job_id),
            ("inner", "before", job_id),
            ("handler", job_id),
            ("inner", *last, job_id, *more),
            ("outer", *last, job_id, *more),
        ]
    assert len(observer.dead(queue.name)) == 1


@pytest.mark.servers("pinned")
def test_middleware_that_leaves_ends_no_thread(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    found: list[tuple[str, ...]] = []
    recorder = Recorder("one", found)
    recorder.error = SystemExit
    worker = Worker(conn, queue.name, concurrency=1, middleware=[recorder])
    worker.handler("t")(lambda data: None)
    for _ in range(3):
        enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert [step[1] for step in found] == ["before", "after"] * 3


@pytest.mark.servers("pinned")
def test_a_task_that_leaves_ends_no_loop(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    seen: list[Any] = []
    worker = Worker(conn, queue.name)

    async def leave() -> None:
        sys.exit("leaving")

    @worker.handler("t")
    async def handler(data: Any) -> None:
        if data == 1:
            await asyncio.wait([asyncio.ensure_future(leave())])
        seen.append(data)

    for number in (1, 2):
        enqueue_json(queue, number, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert sorted(seen) == [1, 2]


@pytest.mark.servers("pinned")
def test_middleware_may_refuse_a_job(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, register: Register
) -> None:
    class Guard(Middleware):
        def before(self, job: cwist_jq.Job) -> None:
            raise Reject("not today")

    seen: list[Any] = []
    worker = Worker(conn, queue.name, middleware=[Guard()])
    register(worker, "t", lambda data, job: seen.append(data))
    enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(lambda: observer.dead(queue.name))
    assert only_letter(observer, queue.name).reason == "not today"
    assert seen == []


def test_middleware_of_coroutines(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    found = []

    class Slow(Middleware):
        async def before(self, job: cwist_jq.Job) -> None:
            await asyncio.sleep(0)
            found.append("before")

        async def after(self, job: cwist_jq.Job) -> None:
            await asyncio.sleep(0)
            found.append("after")

    worker = Worker(conn, queue.name, middleware=[Slow()])

    @worker.handler("t")
    async def handler(data: Any) -> None:
        found.append("handler")

    enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert found == ["before", "handler", "after"]


def test_a_snoozed_job_spends_no_attempt(
    conn: cwist_jq.Connection, make_queue: MakeQueue, observer: Observer, register: Register
) -> None:
    """Also on its last delivery; where the server cannot delay so, the lease runs out."""
    spends = isinstance(observer, NatsObserver) and not observer.is_at_least(2, 12)
    queue = make_queue(max_retries=2 if spends else 1, visibility_timeout=1.0)
    seen: list[Any] = []

    def handler(data: Any, job: cwist_jq.Job) -> None:
        seen.append((time.monotonic(), job.attempts))
        if len(seen) == 1:
            raise Snooze(0.3)

    worker = Worker(conn, queue)
    register(worker, "t", handler)
    enqueue_json(queue, 1, type="t")
    with running(worker):
        eventually(lambda: len(seen) == 2)
        eventually(is_done(observer, queue.name))
    assert [attempts for _, attempts in seen] == ([1, 2] if spends else [1, 1])
    assert seen[1][0] - seen[0][0] >= 0.25
    assert observer.dead(queue.name) == []
