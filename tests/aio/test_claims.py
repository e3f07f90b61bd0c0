"""One thread claims for all tasks that wait: what is waited for, never more."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import cwist_jq
from cwist_jq import _lib, aio
from tests.aio.support import asynchronous, claim, eventually, no_job, opened
from tests.observers import Observer

#: More than is copied when a job comes.
LARGE = b"x" * 100_000


@asynchronous
async def test_tasks_get_jobs_in_the_order_in_which_they_came(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        waiting = []
        for _ in range(20):
            waiting.append(asyncio.create_task(queue.claim(20)))
            await asyncio.sleep(0)
        await asyncio.sleep(0.3)
        for number in range(20):
            await queue.enqueue(b"%d" % number)
        jobs = await asyncio.gather(*waiting)
        assert [int(job.payload) for job in jobs if job is not None] == list(range(20))
        await queue.ack_many([job for job in jobs if job is not None])


@asynchronous
async def test_no_more_is_claimed_than_is_waited_for(
    url: str, queue_name: str, observer: Observer
) -> None:
    """D06: nothing waits in this process with a lease that runs."""
    async with opened(url, queue_name) as queue:
        await queue.enqueue_many([b"x"] * 100)
        for count in (1, 7, 20):
            jobs = await asyncio.gather(*[claim(queue) for _ in range(count)])
            await asyncio.sleep(0.2)
            async with opened(url, queue_name) as other:
                rest = await other.claim_many(1000, 1)
                assert len(rest) == 100 - count
                await other.release_many(rest)
            await queue.release_many(jobs)
        await queue.ack_many(await queue.claim_many(1000))
        assert await asyncio.to_thread(observer.leftovers, queue_name) == []


@asynchronous
async def test_hundreds_of_claims_need_one_thread(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        threads = threading.active_count()
        waiting = [asyncio.create_task(claim(queue, 30)) for _ in range(500)]
        await asyncio.sleep(0.3)
        assert threading.active_count() <= threads + 1
        # They do not keep others from the threads of the connection.
        assert await queue.dead_count() == 0
        await queue.enqueue_many([b"%d" % number for number in range(500)])
        jobs = await asyncio.gather(*waiting)
        assert len({job.payload for job in jobs}) == 500
        await queue.ack_many(jobs)


@asynchronous
async def test_claims_keep_their_time(url: str, queue_name: str) -> None:
    """R06: each of many with times of their own, which come in any order."""

    async def timed(seconds: float) -> None:
        start = time.monotonic()
        await no_job(queue, seconds)
        took = time.monotonic() - start
        assert seconds - 0.005 <= took < seconds + 0.4, (seconds, took)

    async with opened(url, queue_name) as queue:
        await no_job(queue)
        for timeout in (0, 0.01, 0.15, 0.4):
            await timed(timeout)
        for_ever = asyncio.create_task(claim(queue, 60))
        await asyncio.gather(*[timed(timeout) for timeout in (0.9, 0.3, 0.6, 0, 0.01, 0.31, 0.32)])
        for timeout in (0, 0.01, 0.15):
            await timed(timeout)
        assert not for_ever.done()
        await queue.enqueue(b"x")
        await (await for_ever).ack()


@asynchronous
async def test_a_look_finds_what_is_there(url: str, queue_name: str) -> None:
    """Also while the thread is in a long claim, which has just taken a job."""
    async with opened(url, queue_name) as queue:
        for _ in range(10):
            waiting = asyncio.create_task(claim(queue, 30))
            await asyncio.sleep(0.01)
            await queue.enqueue_many([b"1", b"2"])
            look = await queue.claim(0)
            first = await waiting
            assert look is not None
            assert {first.payload, look.payload} == {b"1", b"2"}
            await queue.ack_many([first, look])


@asynchronous
async def test_claims_of_many_share(url: str, queue_name: str) -> None:
    """Each of the waiting gets one before one gets more."""
    async with opened(url, queue_name) as queue:
        many = asyncio.create_task(queue.claim_many(100, 20))
        await asyncio.sleep(0.2)
        one = asyncio.create_task(queue.claim(20))
        few = asyncio.create_task(queue.claim_many(3, 20))
        await asyncio.sleep(0.2)
        await queue.enqueue_all([b"%d" % number for number in range(10)])
        got = await asyncio.gather(many, few)
        job = await one
        assert job is not None
        sizes = [len(jobs) for jobs in got]
        assert sizes[0] >= 1
        assert 1 <= sizes[1] <= 3
        jobs = [job, *got[0], *got[1]]
        if len(jobs) < 10:
            jobs += await queue.claim_many(100, 5)
        assert sorted(int(job.payload) for job in jobs) == list(range(10))
        await queue.ack_many(jobs)


@asynchronous
async def test_interrupt_wakes_the_tasks_of_its_handle(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue, opened(url, queue_name) as other:
        waiting = [asyncio.create_task(queue.claim()) for _ in range(3)]
        not_me = asyncio.create_task(claim(other))
        await asyncio.sleep(0.3)
        queue.interrupt()
        for error in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(error, cwist_jq.Interrupted)
            assert queue_name in error.text
        assert not not_me.done()
        await queue.enqueue(b"x")
        await (await not_me).ack()
    with pytest.raises(cwist_jq.Closed):
        queue.interrupt()


@asynchronous
async def test_close_wakes_waiting_tasks(url: str, queue_name: str) -> None:
    """F08."""
    async with aio.connect(url) as conn:
        for close in ("queue", "connection"):
            queue = await conn.queue(queue_name)
            waiting = [asyncio.create_task(queue.claim()) for _ in range(3)]
            await asyncio.sleep(0.2)
            start = time.monotonic()
            await (queue.close() if close == "queue" else conn.close())
            assert time.monotonic() - start < 2
            for error in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(error, cwist_jq.Closed)


@asynchronous
async def test_a_claim_that_ended_catches_nothing(url: str, queue_name: str) -> None:
    """R10: a job goes at once to the worker that waits."""
    async with opened(url, queue_name) as queue, opened(url, queue_name) as other:
        waiting = asyncio.create_task(queue.claim())
        await asyncio.sleep(0.3)
        waiting.cancel()
        await asyncio.wait([waiting])
        await asyncio.sleep(0.3)
        await other.enqueue(b"x")
        job = await claim(other, 1)
        assert job.attempts == 1
        await job.ack()


@asynchronous
async def test_threads_end_when_nobody_needs_them(
    url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cwist_jq.aio.threads.IDLE", 0.2)
    monkeypatch.setattr("cwist_jq.aio.claims.IDLE", 0.2)
    async with opened(url, queue_name) as queue:
        for _ in range(3):
            await asyncio.gather(*[queue.enqueue(b"x") for _ in range(10)])
            jobs = await asyncio.gather(*[claim(queue) for _ in range(10)])
            await asyncio.gather(*[job.nack("x") for job in jobs])
            await eventually(lambda: _of_ours() == 0)
    await eventually(lambda: _of_ours() == 0)


def _of_ours() -> int:
    return sum(thread.name.startswith("cwist_jq") for thread in threading.enumerate())


@asynchronous
async def test_a_dropped_job_is_kept_by_nobody(url: str, queue_name: str) -> None:
    """D02: no payload stays in memory, and no lease is renewed, for a job that is forgotten."""
    async with opened(url, queue_name, visibility_timeout=0.5, auto_renew=True) as queue:
        await queue.enqueue_many([LARGE] * 5)
        before = _lib.live_handles()
        jobs = [await claim(queue)]
        jobs += await queue.claim_many(2, 60)
        jobs += await queue.ack_and_claim([jobs.pop(0)], 2, 60)
        assert _lib.live_handles() > before
        jobs.clear()
        # Whoever made the claim may be about to forget it.
        await eventually(lambda: _lib.live_handles() == before)
        assert (await claim(queue)).attempts == 2


@asynchronous
async def test_a_large_payload_is_there_after_the_end(url: str, queue_name: str) -> None:
    """As with cwist_jq: what C frees with the end of a job was copied before."""
    async with opened(url, queue_name) as queue:
        ids = await queue.enqueue_many([LARGE] * 5)
        jobs = [await claim(queue) for _ in ids]
        await jobs[0].release()
        await jobs[1].nack("no", dead=True)
        await jobs[2].ack()
        await queue.ack_many(jobs[3:])
        assert [job.payload for job in jobs] == [LARGE] * 5
