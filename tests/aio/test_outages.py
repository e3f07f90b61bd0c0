"""A server that stalls, breaks or goes away: the loop goes on, and each task is told in time."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import cwist_jq
from cwist_jq import aio
from tests.aio.support import Ticker, asynchronous, claim
from tests.proxy import Proxy

#: No gap in the loop's work may be longer.
GAP = 0.05


@pytest.mark.quiet
@asynchronous
async def test_the_loop_is_never_blocked(proxy: Proxy, proxy_url: str, queue_name: str) -> None:
    """R05: every call against a server that has stopped to answer, and then goes on."""
    async with aio.connect(proxy_url, operation_timeout=1.0) as conn:
        queue = await conn.queue(queue_name)
        await queue.enqueue_many([b"x"] * 6)
        jobs = await queue.claim_many(6)
        proxy.stall()
        calls = [
            queue.enqueue(b"x"),
            queue.enqueue_many([b"x"] * 100),
            queue.enqueue_all([b"x"]),
            queue.claim(0.3),
            queue.claim(0),
            queue.dead_count(),
            queue.stats(),
            queue.dead.page(),
            jobs[0].ack(),
            jobs[1].nack("x"),
            jobs[2].release(),
            jobs[3].extend(),
            queue.ack_and_claim(jobs[4:5], 1, 0.2),
            aio.connect(proxy_url, operation_timeout=0.5).__aenter__(),
            conn.queue(queue_name).__aenter__(),
        ]
        async with Ticker() as ticker:
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(result, cwist_jq.Error) for result in results) >= 10
            assert not any(isinstance(result, asyncio.CancelledError) for result in results)
            proxy.flow()
            await queue.enqueue(b"after")
            await (await claim(queue)).ack()
            await queue.close()
            await conn.close()
        assert ticker.worst < GAP


@pytest.mark.quiet
@asynchronous
async def test_the_loop_goes_on_under_load(url: str, queue_name: str) -> None:
    async with aio.connect(url) as conn, conn.queue(queue_name) as queue:
        done = 0

        async def work() -> None:
            nonlocal done
            while done < 1000:
                await queue.enqueue(b"x" * 100)
                async with await claim(queue):
                    done += 1

        async with Ticker() as ticker:
            await asyncio.gather(*[work() for _ in range(20)])
        assert ticker.worst < 2 * GAP


@asynchronous
async def test_a_server_that_is_gone_fails_all_in_time(
    proxy: Proxy, proxy_url: str, queue_name: str
) -> None:
    """R06: 5,000 enqueues are five batches, and the last one does not wait five timeouts."""
    async with (
        aio.connect(proxy_url, operation_timeout=1.0) as conn,
        conn.queue(queue_name) as queue,
    ):
        await queue.enqueue(b"x")
        await (await claim(queue)).ack()
        proxy.refuse()
        proxy.cut()
        start = time.monotonic()
        calls = [queue.enqueue(b"%d" % number) for number in range(5000)]
        waits = [queue.claim(0.5), queue.claim(0.7), queue.claim(0)]
        results = await asyncio.gather(*calls, *waits, return_exceptions=True)
        assert time.monotonic() - start < 4
        kinds = {type(result) for result in results}
        assert kinds <= {cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown}
        assert all(isinstance(result, cwist_jq.ConnectionFailed) for result in results[-3:])
        proxy.flow()
        await queue.enqueue(b"after")
        job = await claim(queue)
        await job.ack()


@asynchronous
async def test_a_wait_outlasts_an_outage(proxy: Proxy, proxy_url: str, queue_name: str) -> None:
    """R01: the claim goes on when the server is back."""
    async with aio.connect(proxy_url) as conn, conn.queue(queue_name) as queue:
        waiting = [asyncio.create_task(claim(queue, 30)) for _ in range(3)]
        await asyncio.sleep(0.2)
        for _ in range(3):
            proxy.cut()
            await asyncio.sleep(0.1)
        async with aio.connect(proxy_url) as other, other.queue(queue_name) as producer:
            await producer.enqueue_many([b"1", b"2", b"3"])
        jobs = await asyncio.gather(*waiting)
        assert {job.payload for job in jobs} == {b"1", b"2", b"3"}
        await asyncio.gather(*[job.ack() for job in jobs])


@asynchronous
async def test_stalled_calls_have_few_threads(
    proxy: Proxy, proxy_url: str, queue_name: str
) -> None:
    async with (
        aio.connect(proxy_url, operation_timeout=1.0) as conn,
        conn.queue(queue_name) as queue,
    ):
        await queue.enqueue_many([b"x"] * 50)
        jobs = await queue.claim_many(50)
        before = _of_ours()
        proxy.stall()
        settled = asyncio.gather(*[job.nack("x") for job in jobs], return_exceptions=True)
        waiting = asyncio.gather(*[queue.claim(0.5) for _ in range(50)], return_exceptions=True)
        await asyncio.sleep(0.3)
        assert _of_ours() <= max(before, 4) + 1
        proxy.flow()
        await asyncio.gather(settled, waiting)


def _of_ours() -> int:
    return sum(thread.name.startswith("cwist_jq") for thread in threading.enumerate())
