"""What the library hands back by itself spends no attempt (SPEC rule 14)."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, no_job, worker_process
from tests.observers import Observer
from tests.waiting import PATIENCE, Background, eventually

ROUNDS = 8


class _Signals:
    """Turns SIGUSR1 into KeyboardInterrupt, but only while it is armed."""

    def __init__(self) -> None:
        self.armed = False

    def __call__(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt


@pytest.fixture
def signals() -> Iterator[_Signals]:
    """The handler of SIGUSR1."""
    handler = _Signals()
    before = signal.signal(signal.SIGUSR1, handler)
    yield handler
    signal.signal(signal.SIGUSR1, before)


def _finish(queue: cwist_jq.Queue, observer: Observer, name: str, seen: dict[str, int]) -> None:
    """All jobs that are still there come with one attempt, and nothing is left."""
    while observer.ready_and_claimed(name):
        job = claim(queue)
        assert job.id not in seen
        seen[job.id] = job.attempts
        job.ack()
    assert set(seen.values()) <= {1}
    assert observer.leftovers(name) == []


@pytest.mark.slow
@pytest.mark.plain  # asyncio.run() has its own way with Ctrl-C
@pytest.mark.parametrize("how", ["claim", "claim_many", "ack_and_claim"])
def test_an_interrupted_claim_loses_no_job_and_no_attempt(
    make_queue: MakeQueue, observer: Observer, queue_name: str, signals: _Signals, how: str
) -> None:
    """F05: a signal that raises in the same instant in which a job arrives."""
    queue, producer = make_queue(max_retries=1), make_queue()
    no_job(queue)
    pauses = random.Random(5)
    seen: dict[str, int] = {}
    interrupted = 0
    main = threading.main_thread().ident
    assert main is not None

    def meanwhile(first: float, second: float) -> str:
        time.sleep(0.03 + first)
        job_id = producer.enqueue(b"x")
        time.sleep(second)
        signal.pthread_kill(main, signal.SIGUSR1)
        return job_id

    def one() -> cwist_jq.Job:
        if how == "claim":
            return claim(queue)
        if how == "claim_many":
            (job,) = queue.claim_many(1000, PATIENCE)
        else:
            (job,) = queue.ack_and_claim(done, 1000, PATIENCE)
        return job

    ids = []
    for _ in range(ROUNDS):
        done = []
        if how == "ack_and_claim":
            ids.append(producer.enqueue(b"y"))
            done = [claim(queue)]
            seen[done[0].id] = done[0].attempts
        other = Background(meanwhile, pauses.uniform(0, 0.2), pauses.choice([0, 0, 0.0005, 0.002]))
        signals.armed = True
        try:
            job = one()
            signals.armed = False
        except KeyboardInterrupt:
            interrupted += 1
        else:
            seen[job.id] = job.attempts
            job.ack()
        ids.append(other.result())
    _finish(queue, observer, queue_name, seen)
    assert sorted(seen) == sorted(ids)
    assert interrupted + len(seen) >= ROUNDS


@pytest.mark.needs_server
def test_ctrl_c_ends_a_blocked_claim_of_a_program(
    make_queue: MakeQueue, observer: Observer, queue_name: str, url: str
) -> None:
    """F05: the program is told within half a second, and its pull catches nothing afterwards."""
    queue = make_queue(max_retries=1)
    with worker_process(url, queue_name, then="wait", max_retries=1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - start < 0.5
        assert process.wait(PATIENCE) == 0
    queue.enqueue(b"x")
    job = claim(queue, 1.0)
    assert job.attempts == 1
    job.ack()
    assert observer.leftovers(queue_name) == []


@pytest.mark.parametrize("end", ["interrupt", "close"])
def test_a_job_that_comes_after_a_claim_was_given_up_is_released(
    make_queue: MakeQueue, observer: Observer, queue_name: str, end: str
) -> None:
    """The claim looks up every 100 ms; until then a job still reaches it, and must go back."""
    other = make_queue(max_retries=1)
    worker = make_queue(max_retries=1)
    no_job(worker)
    pauses = random.Random(7)
    for _ in range(ROUNDS):
        waiting = Background(worker.claim, PATIENCE)
        time.sleep(0.03 + pauses.uniform(0, 0.1))
        give_up: Callable[[], None] = worker.interrupt if end == "interrupt" else worker.close
        give_up()
        time.sleep(pauses.uniform(0, 0.06))
        job_id = other.enqueue(b"x")
        with pytest.raises((cwist_jq.Interrupted, cwist_jq.Closed)):
            waiting.result()
        job = claim(other, 1.0)
        assert (job.id, job.attempts) == (job_id, 1)
        job.ack()
        if end == "close":
            worker = make_queue(max_retries=1)
    assert observer.leftovers(queue_name) == []


def test_an_interrupt_in_the_instant_of_a_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """The claim brings the job, or is interrupted and hands it back: never both, never neither."""
    other = make_queue(max_retries=1)
    worker = make_queue(max_retries=1)
    no_job(worker)
    pauses = random.Random(8)
    for _ in range(ROUNDS):
        waiting = Background(worker.claim, PATIENCE)
        time.sleep(0.03 + pauses.uniform(0, 0.05))
        job_id = other.enqueue(b"x")
        time.sleep(pauses.choice([0, 0.0002, 0.0005]))
        worker.interrupt()
        try:
            job = waiting.result()
        except cwist_jq.Interrupted:
            job = claim(other, 1.0)
        assert job is not None
        assert (job.id, job.attempts) == (job_id, 1)
        job.ack()
    assert observer.leftovers(queue_name) == []


def test_a_job_that_comes_at_the_deadline_is_claimed_or_stays_ready(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """A job on its way when the claim's time is over is not lost and spends nothing."""
    worker, producer = make_queue(max_retries=1), make_queue()
    no_job(worker)
    pauses = random.Random(9)
    seen: dict[str, int] = {}
    ids = []
    for number in range(ROUNDS):
        timeout = 0.1 + number % 3 * 0.05
        waiting = Background(worker.claim, timeout)
        time.sleep(timeout + pauses.uniform(-0.004, 0.002))
        ids.append(producer.enqueue(b"x"))
        job = waiting.result()
        if job is not None:
            seen[job.id] = job.attempts
            job.ack()
        eventually(lambda: observer.claimed(queue_name) == 0)
    _finish(worker, observer, queue_name, seen)
    assert sorted(seen) == sorted(ids)


def test_polls_lose_nothing(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """R06: claim(0) in a loop beside a producer; each job comes once, with one attempt."""
    worker, producer = make_queue(max_retries=1), make_queue()
    ids = Background(lambda: [producer.enqueue(b"%d" % number) for number in range(60)])
    seen: dict[str, int] = {}

    def poll() -> bool:
        job = worker.claim(0)
        if job is not None:
            seen[job.id] = job.attempts
            job.ack()
        return len(seen) == 60

    eventually(poll, pause=0.002)
    assert sorted(seen) == sorted(ids.result())
    _finish(worker, observer, queue_name, seen)


def test_an_interrupt_in_a_with_block_releases_the_job(
    make_queue: MakeQueue, observer: Observer, queue_name: str, signals: _Signals
) -> None:
    """N05, D09: Ctrl-C in a handler hands the job back."""
    queue = make_queue(max_retries=1)
    queue.enqueue(b"x")
    job = claim(queue)
    signals.armed = True
    with pytest.raises(KeyboardInterrupt), job:
        signal.raise_signal(signal.SIGUSR1)
    again = claim(queue)
    assert again.attempts == 1
    again.ack()
    assert observer.leftovers(queue_name) == []
