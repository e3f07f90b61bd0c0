"""Enqueues and acks of many tasks share round trips, and each has its own result."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc

import pytest

import cwist_jq
from cwist_jq import aio
from tests.aio.support import asynchronous, claim, no_job, opened
from tests.proxy import Proxy


@asynchronous
async def test_ten_thousand_enqueues_at_once(url: str, queue_name: str) -> None:
    """M01, B02: in bounded memory, few threads and a short time."""
    count = 10_000
    threads = threading.active_count()
    async with opened(url, queue_name) as queue:
        tracemalloc.start()
        start = time.monotonic()
        ids = await asyncio.gather(*[queue.enqueue(b"%d" % n, type="t") for n in range(count)])
        took = time.monotonic() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(set(ids)) == count
        assert took < 10
        assert peak < 40e6
        assert threading.active_count() <= threads + 4
        payloads = set()
        for _ in range(0, count, 1000):
            jobs = await queue.claim_many(1000, 5)
            payloads |= {job.payload for job in jobs}
            await asyncio.gather(*[job.ack() for job in jobs])
        assert payloads == {b"%d" % n for n in range(count)}
        await no_job(queue)


@asynchronous
async def test_enqueues_keep_their_order(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        tasks = [asyncio.create_task(queue.enqueue(b"%d" % n)) for n in range(500)]
        await asyncio.gather(*tasks)
        jobs = await queue.claim_many(500)
        assert [int(job.payload) for job in jobs] == list(range(500))
        await queue.ack_many(jobs)


@asynchronous
async def test_few_round_trips(proxy: Proxy, proxy_url: str, queue_name: str) -> None:
    async with opened(proxy_url, queue_name) as queue:
        await queue.enqueue(b"first")
        await (await claim(queue)).ack()
        proxy.forget()
        await asyncio.gather(*[queue.enqueue(b"x") for _ in range(400)])
        jobs = await queue.claim_many(400)
        await asyncio.gather(*[job.ack() for job in jobs])
        sent = len(proxy.pieces("up"))
        assert sent < 60


@asynchronous
async def test_each_enqueue_has_its_own_result(url: str, queue_name: str) -> None:
    """B01: what is wrong with one job is no matter of those that went with it."""
    async with opened(url, queue_name) as queue:
        calls = [
            queue.enqueue(b"%d" % n, type="x" * (300 if n % 7 == 0 else 5), headers={"N": str(n)})
            if n % 2
            else queue.enqueue(b"%d" % n, type="x" * (300 if n % 7 == 0 else 5))
            for n in range(1000)
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        good = {}
        for number, result in enumerate(results):
            if number % 7 == 0:
                assert isinstance(result, cwist_jq.InvalidParam)
                assert "items[" not in result.text
                assert "type has 300 bytes" in result.text
            elif isinstance(result, cwist_jq.Unsupported):
                assert number % 2  # headers, where the engine has none
            else:
                assert isinstance(result, str)
                good[result] = b"%d" % number
        seen = {}
        while jobs := await queue.claim_many(1000, 0):
            seen.update({job.id: job.payload for job in jobs})
            await queue.ack_many(jobs)
        assert seen == good


@asynchronous
async def test_each_ack_has_its_own_result(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue, aio.connect(url) as conn:
        await queue.enqueue_many([b"x"] * 20)
        jobs = await queue.claim_many(20)
        await jobs[3].release()
        twice = [job.ack() for job in jobs] + [jobs[5].ack()]
        results = await asyncio.gather(*twice, return_exceptions=True)
        failed = [number for number, result in enumerate(results) if result is not None]
        assert failed == [3, 20]
        for number in failed:
            assert isinstance(results[number], cwist_jq.Closed)
            assert "jobs[" not in str(results[number])
        async with conn.queue(queue_name) as other, await claim(other) as last:
            assert last.id == jobs[3].id


@asynchronous
async def test_acks_of_lost_leases_fail_alone(url: str, queue_name: str) -> None:
    """D04: fenced like single acks."""
    async with opened(url, queue_name, visibility_timeout=0.5) as queue:
        await queue.enqueue_many([b"1", b"2"])
        old = await queue.claim_many(2)
        new = await claim(queue)
        second = await claim(queue)
        await queue.enqueue(b"3")
        third = await claim(queue)
        results = await asyncio.gather(
            *[job.ack() for job in (old[0], third, new, old[1], second)], return_exceptions=True
        )
        kinds = [None if result is None else type(result) for result in results]
        assert kinds == [cwist_jq.LeaseLost, None, None, cwist_jq.LeaseLost, None]


@asynchronous
async def test_one_queue_does_not_keep_the_threads(url: str, queue_name: str) -> None:
    """Fair: a single enqueue has its turn beside queues that always have something to send."""
    async with aio.connect(url) as conn:
        busy = [await conn.queue(f"{queue_name}-{number}") for number in range(6)]
        quiet = await conn.queue(queue_name)
        done = False

        async def flood(queue: aio.Queue) -> None:
            while not done:
                await queue.enqueue(b"x" * 100)

        floods = [asyncio.create_task(flood(queue)) for queue in busy for _ in range(50)]
        worst = 0.0
        for _ in range(20):
            start = time.monotonic()
            await quiet.enqueue(b"x")
            worst = max(worst, time.monotonic() - start)
        done = True
        await asyncio.gather(*floods)
        assert worst < 1.0


@pytest.mark.engine("redis")
@asynchronous
async def test_a_batch_is_cut_by_its_bytes(url: str, queue_name: str) -> None:
    """Forty jobs of 1 MB are more than one batch; each is stored once."""
    async with opened(url, queue_name) as queue:
        payloads = [bytes([n]) * (1 << 20) for n in range(40)]
        await asyncio.gather(*[queue.enqueue(payload) for payload in payloads])
        seen = []
        for _ in payloads:
            async with await claim(queue) as job:
                seen.append(job.payload)
        assert seen == payloads
        await no_job(queue)
