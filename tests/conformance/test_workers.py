"""Several workers on one queue, and what they leave on the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import (
    MakeQueue,
    bytes_of,
    claim,
    digest,
    drain,
    nats_of,
    no_job,
    redis_of,
)
from tests.observers import GROUP, Observer
from tests.waiting import Background


def _work(worker: cwist_jq.Queue) -> list[tuple[str, int]]:
    seen = []
    while (job := worker.claim(0.5)) is not None:
        seen.append((job.id, job.attempts))
        job.ack()
    return seen


@pytest.mark.parametrize("count", [2, 5])
def test_workers_share_the_jobs(
    make_queue: MakeQueue, observer: Observer, queue_name: str, count: int
) -> None:
    """S11, F06: whatever their names, each job is delivered once, and nobody is left out."""
    producer = make_queue()
    ids = [producer.enqueue(b"%d" % number) for number in range(60)]
    workers = [make_queue(consumer=f"w{number}") for number in range(count)]
    firsts = [claim(worker) for worker in workers]
    results = [Background(_work, worker) for worker in workers]
    seen = [one for result in results for one in result.result()]
    for job in firsts:
        job.ack()
    assert sorted([*seen, *((job.id, job.attempts) for job in firsts)]) == sorted(
        (job_id, 1) for job_id in ids
    )
    assert observer.leftovers(queue_name) == []
    if observer.engine == "nats":
        nats = nats_of(observer)
        consumers = nats.ask(lambda js: js.consumers_info(nats.stream(queue_name)))
        assert [one.name for one in consumers] == [GROUP]


@pytest.mark.parametrize("names", [("same", "same"), (None, None), ("w1", None)])
def test_workers_may_share_a_label(
    make_queue: MakeQueue,
    observer: Observer,
    queue_name: str,
    names: tuple[str | None, str | None],
) -> None:
    """S11: the label tells workers apart for people, not for the queue."""
    first, second = (make_queue(consumer=name) for name in names)
    ids = [first.enqueue(b"%d" % number) for number in range(10)]
    held = claim(first)
    others = [claim(second) for _ in range(9)]
    assert sorted(job.id for job in [held, *others]) == sorted(ids)
    no_job(first)
    for job in [*others, held]:
        job.ack()
    assert observer.leftovers(queue_name) == []


def test_threads_share_a_handle(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """F06: producers and workers mixed on one handle; each gets its own answers."""
    queue = make_queue()

    def produce(number: int) -> dict[str, str]:
        made = {}
        for turn in range(15):
            payload = bytes_of(50 + turn * 37, number * 16 + turn)
            made[queue.enqueue(payload, type=f"{number}/{turn}")] = digest(payload)
        return made

    def work() -> dict[str, str]:
        seen = {}
        while (job := queue.claim(0.5)) is not None:
            seen[job.id] = digest(job.payload)
            job.ack()
        return seen

    producers = [Background(produce, number) for number in range(4)]
    workers = [Background(work) for _ in range(4)]
    made = {key: value for one in producers for key, value in one.result().items()}
    seen = {key: value for one in workers for key, value in one.result().items()}
    assert made == seen
    assert len(made) == 60
    assert observer.leftovers(queue_name) == []


@pytest.mark.engine("redis")
def test_consumers_do_not_pile_up(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """M03: opened, used or not, closed, many times."""
    redis = redis_of(observer)
    for number in range(40):
        with make_queue() as queue:
            if number % 2:
                queue.enqueue(b"x")
                claim(queue).ack()
            else:
                no_job(queue)
    assert len(redis.client.xinfo_consumers(redis.key(queue_name, "s"), GROUP)) <= 1


@pytest.mark.engine("redis")
def test_a_consumer_with_pending_entries_is_not_deleted(
    make_queue: MakeQueue, observer: Observer, queue_name: str
) -> None:
    """L06, L07: with the consumer its pending entries would vanish."""
    redis = redis_of(observer)
    worker = make_queue(visibility_timeout=0.4)
    ids = [worker.enqueue(b"%d" % number) for number in range(3)]
    assert [claim(worker).id for _ in range(3)] == ids
    worker.close()
    (consumer,) = redis.client.xinfo_consumers(redis.key(queue_name, "s"), GROUP)
    assert consumer["pending"] == 3
    again = drain(make_queue(visibility_timeout=0.4), 3)
    assert [job.id for job in again] == ids


@pytest.mark.engine("redis")
def test_a_named_consumer_stays(make_queue: MakeQueue, observer: Observer, queue_name: str) -> None:
    """The name is the caller's; another process may be using it right now."""
    redis = redis_of(observer)
    with make_queue(consumer="mine") as queue:
        queue.enqueue(b"x")
        drain(queue, 1)
    consumers = redis.client.xinfo_consumers(redis.key(queue_name, "s"), GROUP)
    assert [one["name"] for one in consumers] == [b"mine"]


def test_queues_of_two_connections_meet(
    make_queue: MakeQueue, url: str, queue_name: str, make_observer: Callable[[str, str], Any]
) -> None:
    """Producer and worker share nothing but the server."""
    with cwist_jq.connect(url) as conn, conn.queue(queue_name) as producer:
        job_id = producer.enqueue(b"x", type="t")
        job = claim(make_queue())
        assert (job.id, job.payload, job.type) == (job_id, b"x", "t")
        job.ack()
        assert producer.dead_count() == 0
