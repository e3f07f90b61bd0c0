"""Many threads on one queue, and handles that end while others use them."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import blocked_claim, leftovers, must_claim, took
from tests.waiting import Background, eventually

THREADS = 16
ROUNDS = 60


@pytest.mark.servers("all")
def test_sixteen_threads_on_one_queue(
    make_queue: Callable[..., Any], observer: Any, queue_name: str
) -> None:
    """F06: enqueue, claim, ack, nack, release, extend and count, each thread its own answers."""
    queue = make_queue(max_retries=1000)
    ids: dict[bytes, str] = {}
    acked: list[tuple[bytes, str]] = []
    start = threading.Barrier(THREADS)

    def work(thread: int) -> None:
        start.wait()
        for turn in range(ROUNDS):
            payload = b"%d/%d" % (thread, turn)
            ids[payload] = queue.enqueue(payload, type=f"t{thread}")
            job = must_claim(queue, 20.0)
            assert job.type == f"t{job.payload.split(b'/')[0].decode()}"
            if turn % 5 == 1:
                job.nack(reason="again")
            elif turn % 5 == 2:
                job.release()
            else:
                if turn % 5 == 3:
                    job.extend()
                    assert queue.dead_count() == 0
                job.ack()
                acked.append((job.payload, job.id))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    while (job := queue.claim(0.2)) is not None:
        job.ack()
        acked.append((job.payload, job.id))
    assert len(ids) == THREADS * ROUNDS
    assert Counter(acked) == Counter(ids.items())
    assert leftovers(observer, queue_name) == []


@pytest.mark.servers("all")
def test_a_blocked_claim_delays_nobody(queue: Any, observer: Any) -> None:
    """R12: enqueue, ack, extend and count beside a claim that waits on the same queue."""
    queue.enqueue(b"earlier")
    job = must_claim(queue)
    claim = blocked_claim(queue, observer)
    for call in (job.extend, queue.dead_count, job.ack):
        with took(0.0, 0.1):
            call()
    with took(0.0, 0.1):
        queue.enqueue(b"for the claim")
    assert claim.result(1.0).payload == b"for the claim"


@pytest.mark.servers("all")
@pytest.mark.parametrize("what", ["queue", "connection"])
def test_closing_wakes_blocked_claims(
    url: str, connect: Callable[..., Any], queue_name: str, observer: Any, what: str
) -> None:
    """F08, R16."""
    conn = connect(url)
    queue = conn.queue(queue_name)
    claims = [blocked_claim(queue, observer, None)]
    claims += [Background(lambda: queue.claim(None)) for _ in range(3)]
    with took(0.0, 1.0):
        (queue if what == "queue" else conn).close()
        for claim in claims:
            with pytest.raises(cwist_jq.Closed):
                claim.result(1.0)


@pytest.mark.servers("all")
def test_every_method_after_close(url: str, connect: Callable[..., Any], queue_name: str) -> None:
    """F08: closed twice, used after close, settled after close."""
    conn = connect(url)
    queue = conn.queue(queue_name)
    for _ in range(4):
        queue.enqueue(b"x")
    jobs = [must_claim(queue) for _ in range(4)]
    queue.close()
    queue.close()
    calls: list[Callable[[], Any]] = [
        lambda: queue.enqueue(b"x"),
        lambda: queue.claim(0),
        lambda: queue.claim(5.0),
        queue.dead_count,
        queue.interrupt,
        lambda: next(iter(queue)),
        jobs[0].ack,
        jobs[1].nack,
        jobs[2].release,
        jobs[3].extend,
    ]
    for call in calls:
        with took(0.0, 0.1), pytest.raises(cwist_jq.Closed):
            call()
    conn.close()
    conn.close()
    with pytest.raises(cwist_jq.Closed):
        conn.queue(queue_name)


@pytest.mark.slow
@pytest.mark.servers("all")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("order", list(itertools.permutations(["conn", "queue", "job"])))
@pytest.mark.parametrize("way", ["close", "drop"])
def test_any_order_of_destroying(
    url: str, queue_name: str, observer: Any, way: str, order: tuple[str, ...]
) -> None:
    """F08, L06: the job comes back; nothing is left alive."""
    gc.collect()  # what other tests left
    before = cwist_jq._lib.live_handles()
    conn = cwist_jq.connect(url)
    queue = conn.queue(queue_name, visibility_timeout=0.2)
    queue.enqueue(b"x")
    things = {"conn": conn, "queue": queue, "job": must_claim(queue)}
    del conn, queue
    for name in order:
        thing = things.pop(name)
        if way == "close" and name != "job":
            thing.close()
        del thing
        gc.collect()
    assert cwist_jq._lib.live_handles() == before
    with cwist_jq.connect(url) as again, again.queue(queue_name, visibility_timeout=0.2) as last:
        job = must_claim(last, 2.0)
        assert (job.payload, job.attempts) == (b"x", 2)
        job.ack()


@pytest.mark.servers("all")
def test_interrupt_wakes_all_claims_and_loses_nothing(queue: Any, observer: Any) -> None:
    """SPEC section 2: the claims of the handle; later ones go on."""
    claims = [blocked_claim(queue, observer, None)]
    claims += [Background(lambda: queue.claim(None)) for _ in range(3)]
    time.sleep(0.1)
    with took(0.0, 0.5):
        queue.interrupt()
        for claim in claims:
            with pytest.raises(cwist_jq.Interrupted):
                claim.result(1.0)
    queue.enqueue(b"x")
    job = must_claim(queue)
    assert job.attempts == 1
    job.ack()


@pytest.mark.slow
def test_interrupts_in_the_same_instant_as_jobs(
    make_queue: Callable[..., Any], observer: Any
) -> None:
    """Rule 14: a job that arrives meanwhile is handed back, and has spent no attempt."""
    queue, producer = make_queue(), make_queue()
    for turn in range(60):
        claim = Background(lambda: queue.claim(30.0))
        time.sleep(0.002 * (turn % 8))
        first, second = (queue.interrupt, lambda: producer.enqueue(b"%d" % turn))  # noqa: B023
        for call in (first, second) if turn % 3 == 0 else (second, first):
            call()
        try:
            job = claim.result(5.0)
        except cwist_jq.Interrupted:
            job = must_claim(make_queue(), 5.0)
        assert (job.payload, job.attempts) == (b"%d" % turn, 1)
        job.ack()
    eventually(lambda: not observer.ready_and_claimed(queue.name))


@pytest.mark.slow
def test_queues_that_come_and_go_beside_others(
    url: str, connect: Callable[..., Any], queue_name: str, observer: Any
) -> None:
    """F06, F08, M03: threads open, use and close queues of one connection."""
    conn = connect(url)

    def work(thread: int) -> int:
        got = 0
        for turn in range(25):
            with conn.queue(queue_name, max_retries=1000) as queue:
                queue.enqueue(b"%d/%d" % (thread, turn))
                job = queue.claim(5.0)
                if job is not None:
                    job.ack()
                    got += 1
        return got

    with ThreadPoolExecutor(8) as pool:
        got = sum(pool.map(work, range(8)))
    assert got == 8 * 25
    assert leftovers(observer, queue_name) == []
