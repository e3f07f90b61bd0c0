"""What is claimed, of which queue, and when: nothing that cannot start soon."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import pytest

import cwist_jq
from cwist_jq.worker import Worker
from tests.conformance.helpers import MakeQueue
from tests.observers import Observer
from tests.waiting import eventually
from tests.worker.helpers import is_done, running


class Gate:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.open = threading.Event()

    def __call__(self, data: Any) -> None:
        self.begun.append(data)
        assert self.open.wait(20)


def _numbers(queue: cwist_jq.Queue, count: int, kind: str = "t") -> None:
    queue.enqueue_many([b"%d" % number for number in range(count)], type=kind)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_slow_handlers_claim_what_they_run(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, concurrency: int
) -> None:
    """D06: another worker gets the rest, and no lease runs out in a line."""
    gate = Gate()
    worker = Worker(conn, queue.name, concurrency=concurrency)
    worker.handler("t")(gate)
    _numbers(queue, 20)
    with running(worker):
        eventually(lambda: len(gate.begun) == concurrency)
        time.sleep(0.5)
        assert observer.claimed(queue.name) == concurrency
        gate.open.set()
        eventually(is_done(observer, queue.name))
    assert sorted(gate.begun) == list(range(20))


def test_what_waits_behind_slow_handlers_is_handed_back(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    """D06: quick handlers have jobs claimed ahead; when they become slow, others may have those."""
    gate = Gate()
    seen: list[Any] = []
    worker = Worker(conn, queue.name, concurrency=2)
    worker.handler("quick")(seen.append)
    worker.handler("slow")(gate)
    _numbers(queue, 500, "quick")
    _numbers(queue, 2, "slow")
    _numbers(queue, 300, "quick")
    with running(worker):
        eventually(lambda: len(gate.begun) == 2)
        eventually(lambda: observer.claimed(queue.name) == 2)
        other = queue.claim(5)
        assert other is not None
        assert (other.type, other.attempts) == ("quick", 1)
        other.ack()
        gate.open.set()
        eventually(is_done(observer, queue.name))
    assert len(seen) == 799


def test_large_payloads_are_not_claimed_ahead_in_numbers(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    """Memory is bounded by bytes, not by jobs alone."""
    worker = Worker(conn, queue.name, concurrency=1)
    most: list[int] = []
    worker.handler("t")(lambda data: most.append(worker_holds(worker)))
    queue.enqueue_many([b'"' + b"x" * 1_000_000 + b'"'] * 60, type="t")
    with running(worker):
        eventually(is_done(observer, queue.name), timeout=30)
    assert len(most) == 60
    assert max(most) <= 24


def test_a_job_on_its_last_delivery_does_not_wait(
    conn: cwist_jq.Connection, make_queue: MakeQueue, observer: Observer
) -> None:
    """X01: if the process died, such a job would be dead without having run."""
    queue = make_queue(max_retries=2)
    worker = Worker(conn, queue, concurrency=3)
    most: list[tuple[int, int]] = []
    worker.handler("t")(lambda data, job: most.append((job.attempts, worker_holds(worker))))
    _numbers(queue, 1000)
    queue.nack_many(queue.claim_many(500) + queue.claim_many(500))
    with running(worker):
        eventually(is_done(observer, queue.name), timeout=30)
    assert len(most) == 1000
    assert {attempts for attempts, _ in most} == {2}
    # What a first claim brought too many of is handed back at once.
    assert sorted(held for _, held in most)[900] <= 3


def test_the_first_queue_goes_first(
    conn: cwist_jq.Connection, make_queue: MakeQueue, queue_name: str, observer: Observer
) -> None:
    names = [f"{queue_name}-{number}" for number in range(3)]
    queues = [make_queue(name) for name in names]
    seen: list[str] = []
    worker = Worker(conn, names, concurrency=1)

    @worker.handler("t")
    def handler(data: Any, job: cwist_jq.Job) -> None:
        seen.append(job._queue.name)
        time.sleep(0.005)

    for queue in reversed(queues):
        _numbers(queue, 30)
    with running(worker):
        eventually(is_done(observer, *names))
        # Each of them wakes the worker when all are idle.
        for queue in queues:
            _numbers(queue, 1)
            eventually(is_done(observer, *names))
    assert seen == [*(name for name in names for _ in range(30)), *names]


def test_a_queue_that_goes_first_goes_before_what_waits(
    conn: cwist_jq.Connection, make_queue: MakeQueue, queue_name: str, observer: Observer
) -> None:
    names = [f"{queue_name}-high", f"{queue_name}-low"]
    high, low = (make_queue(name) for name in names)
    seen: list[str] = []
    worker = Worker(conn, names, concurrency=1)

    @worker.handler("t")
    def handler(data: Any, job: cwist_jq.Job) -> None:
        seen.append(job._queue.name)
        if len(seen) == 50:
            _numbers(high, 1)
            time.sleep(0.3)

    _numbers(low, 1000)
    with running(worker):
        eventually(is_done(observer, *names))
    assert seen.index(high.name) < 400


def test_queues_by_weight(
    conn: cwist_jq.Connection, make_queue: MakeQueue, queue_name: str, observer: Observer
) -> None:
    names = {f"{queue_name}-a": 3, f"{queue_name}-b": 1}
    seen: list[str] = []
    worker = Worker(conn, names, concurrency=4)

    @worker.handler("t")
    def handler(data: Any, job: cwist_jq.Job) -> None:
        seen.append(job._queue.name[-1])
        time.sleep(0.001)

    for name in names:
        _numbers(make_queue(name), 1000)
    with running(worker):
        eventually(is_done(observer, *names), timeout=30)
    assert len(seen) == 2000
    assert 0.65 <= seen[:1000].count("a") / 1000 <= 0.85


def test_a_slow_job_keeps_no_claim_of_another_queue(
    conn: cwist_jq.Connection, make_queue: MakeQueue, queue_name: str, observer: Observer
) -> None:
    """D06: with all places taken, an idle queue's claim does not take what it cannot start."""
    names = [f"{queue_name}-a", f"{queue_name}-b"]
    first, second = (make_queue(name) for name in names)
    gate = Gate()
    worker = Worker(conn, names, concurrency=1)
    worker.handler("t")(gate)
    with running(worker):
        time.sleep(0.3)  # both are waited for
        _numbers(second, 1)
        eventually(lambda: len(gate.begun) == 1)
        time.sleep(0.6)  # the other claim has been ended
        _numbers(first, 1)
        time.sleep(0.5)
        assert observer.claimed(first.name) == 0
        gate.open.set()
        eventually(is_done(observer, *names))


def test_an_idle_worker_is_woken_at_once(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    """The job does not wait for a poll."""
    times = []
    worker = Worker(conn, queue.name)
    worker.handler("t")(lambda data: times.append(time.monotonic()))
    late = []
    with running(worker):
        for number in range(20):
            time.sleep(0.02)
            began = time.monotonic()
            _numbers(queue, 1)
            eventually(lambda: len(times) > number, pause=0.001)  # noqa: B023 (called at once)
            late.append(times[-1] - began)
    assert sorted(late)[10] < 0.1


def test_jobs_that_are_due_at_once_run_once(
    url: str, queue: cwist_jq.Queue, observer: Observer
) -> None:
    """D10: 500 jobs due in the same second, and ten workers."""
    seen: list[tuple[str, int]] = []
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            worker = Worker(url, queue.name, concurrency=2)
            worker.handler("t")(lambda data, job: seen.append((job.id, job.attempts)))
            stack.enter_context(running(worker))
        items = [cwist_jq.Item(b"", type="t", delay=1) for _ in range(500)]
        ids = queue.enqueue_many(items)
        eventually(lambda: len(seen) >= 500, timeout=30)
        eventually(is_done(observer, queue.name))
    assert sorted(seen) == sorted((job_id, 1) for job_id in ids)


def test_a_server_that_restarts_is_waited_for(own_server: Any, queue_name: str) -> None:
    """R01, R02: handlers that run go on, and jobs are taken again."""
    seen: list[Any] = []
    gate = Gate()
    with cwist_jq.connect(own_server.url, operation_timeout=2) as conn:
        queue = conn.queue(queue_name)
        worker = Worker(conn, queue, concurrency=2)
        worker.handler("t")(seen.append)
        worker.handler("slow")(gate)
        _numbers(queue, 1, "slow")
        with running(worker):
            eventually(lambda: gate.begun)
            for turn in range(3):
                own_server.kill()
                own_server.start()
                _numbers(queue, 1)
                eventually(lambda: len(seen) == turn + 1, timeout=20)  # noqa: B023
            gate.open.set()
            eventually(lambda: queue.claim(0) is None and not worker_holds(worker))
    assert gate.begun == [0]


def worker_holds(worker: Worker) -> int:
    session = worker._session
    return 0 if session is None else session._intake.held()


def test_a_wiped_server_is_no_end(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer
) -> None:
    """L09: the worker takes jobs again, without a restart."""
    seen: list[Any] = []
    worker = Worker(conn, queue.name)
    worker.handler("t")(seen.append)
    _numbers(queue, 1)
    with running(worker):
        eventually(lambda: seen == [0])
        observer.wipe(queue.name)
        _numbers(queue, 3)
        eventually(lambda: seen == [0, 0, 1, 2])
