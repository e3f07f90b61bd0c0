"""Many clients after an outage, many jobs in a call, and links that pass few bytes at a time."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fault.support import drain, must_claim
from tests.proxy import Proxy
from tests.waiting import Background, eventually

CLIENTS = 40
OUTAGE = 5.0
SETTLED = 1.5  # after so long each client waits as long as it ever does


@pytest.mark.slow
def test_clients_do_not_march_in_step(
    proxy: Proxy, proxy_url: str, connect: Callable[..., Any], queue_name: str
) -> None:
    """R14: forty lose their server in one moment; their tries are few, and spread."""
    queues = [connect(proxy_url).queue(queue_name) for _ in range(CLIENTS)]
    claims = [Background(lambda queue=queue: queue.claim(30.0)) for queue in queues]
    eventually(lambda: proxy.connections >= CLIENTS)
    for queue in queues:
        queue.dead_count()
    proxy.refuse()
    proxy.cut()
    start = time.monotonic()
    time.sleep(OUTAGE)
    tries = [moment - start for moment in proxy.tries if moment > start + SETTLED]
    proxy.flow()
    tenths = Counter(int(moment * 10) for moment in tries)
    print(f"{len(tries)} tries in {OUTAGE - SETTLED} s, at most {max(tenths.values())} in 0.1 s")
    # A try each half second to second; the busiest tenth has three times its share at most.
    assert CLIENTS * (OUTAGE - SETTLED) * 0.8 <= len(tries) <= CLIENTS * (OUTAGE - SETTLED) * 2.2
    assert max(tenths.values()) <= 3 * len(tries) / ((OUTAGE - SETTLED) * 10)
    queues[0].enqueue_many([b"x"] * CLIENTS)
    for claim in claims:
        claim.result(10.0).ack()


@pytest.mark.parametrize(("size", "crumb"), [(5_000, 1), (60_000, 3), (900_000, 1000)])
def test_a_link_that_passes_few_bytes_at_a_time(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    queue_name: str,
    size: int,
    crumb: int,
) -> None:
    """P02: enqueued, claimed, retried and read as a dead letter through it, byte for byte."""
    queue = open_queue(proxy_url, queue_name, max_retries=2)
    payload = random.Random(size).randbytes(size)
    proxy.crumble(crumb)
    job_id = queue.enqueue(payload, type="größe")
    for attempt in (1, 2):
        job = must_claim(queue)
        assert (job.payload, job.type, job.attempts) == (payload, "größe", attempt)
        job.nack(reason="again")
    assert queue.dead.read(job_id).payload == payload


def _resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_very_many_in_one_call(
    url: str, open_queue: Callable[..., Any], queue_name: str, observer: Any
) -> None:
    """B02: from an iterator, with a short deadline for each piece; others work meanwhile."""
    count = 100_000
    queue = open_queue(url, queue_name, operation_timeout=2.0)
    other = open_queue(url, f"{queue_name}-other", operation_timeout=2.0)
    before, peak, waits = _resident(), 0, []
    call = Background(lambda: queue.enqueue_many(b"%0100d" % n for n in range(count)))
    while call.running:
        begun = time.monotonic()
        other.enqueue(b"x")
        must_claim(other).ack()
        waits.append(time.monotonic() - begun)
        peak = max(peak, _resident())
    ids = call.result()
    assert len(set(ids)) == count
    assert observer.ready_and_claimed(queue_name) == count
    print(f"{(peak - before) >> 20} MiB more, {max(waits):.3f} s the longest wait of {len(waits)}")
    # The ids alone are a hundred bytes each with their objects; the jobs would be far more.
    assert peak - before < 40 << 20
    assert max(waits) < 2.0
    queue.purge()


@pytest.mark.engine("redis")
def test_a_few_unacked_jobs_keep_little_memory(queue: Any, observer: Any, queue_name: str) -> None:
    """M02: each keeps its node of the stream at most: stream-node-max-bytes, and an entry."""
    count, size, every = 20_000, 1_000, 90
    queue.enqueue_many(random.Random(1).randbytes(size) for _ in range(count))
    stream = observer.key(queue_name, "s")
    full = observer.client.memory_usage(stream, samples=0)
    kept = []
    for _ in range(count // 1000):
        jobs = queue.claim_many(1000, 5.0)
        kept += jobs[::every]
        queue.ack_many([job for place, job in enumerate(jobs) if place % every])
    assert observer.ready_and_claimed(queue_name) == len(kept)
    left = observer.client.memory_usage(stream, samples=0)
    node = int(observer.client.config_get("stream-node-max-bytes")["stream-node-max-bytes"])
    print(f"{full} bytes full, {left} with {len(kept)} left: {left // len(kept)} each")
    assert left <= len(kept) * (node + 2 * size)
    queue.ack_many(kept)
    assert observer.client.memory_usage(stream, samples=0) < 20_000


@pytest.mark.slow
def test_an_operator_who_is_killed_doubles_nothing(
    start: Callable[..., Any], url: str, make_queue: Callable[..., Any], observer: Any
) -> None:
    """X05: killed in the middle of a requeue of all, three times; then another finishes it."""
    queue = make_queue(max_retries=1)
    ids = queue.enqueue_many(b"%d" % number for number in range(1500))
    while jobs := queue.claim_many(500, 0.2):
        queue.nack_many(jobs)
    assert queue.dead_count() == len(ids)
    cut_short = 0
    for _ in range(3):
        left = queue.dead_count()
        child = start("requeue_all", url, queue.name)
        assert child.line() == "ready"
        child.go_on()
        eventually(lambda left=left: queue.dead_count() < left, pause=0.0)  # type: ignore[misc]
        child.kill()
        cut_short += queue.dead_count() > 0
    assert cut_short, "none was killed in the middle"
    queue.dead.requeue_all()
    assert queue.dead_count() == 0
    assert sorted(drain(queue, observer)) == sorted(b"%d" % number for number in range(1500))
