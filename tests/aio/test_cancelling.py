"""A task may be cancelled at any moment, and no job is lost or spends an attempt."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import cwist_jq
from cwist_jq import aio
from tests.aio.support import asynchronous, claim, eventually, no_job, opened
from tests.observers import Observer


@asynchronous
async def test_a_storm_of_cancelled_claims(url: str, queue_name: str, observer: Observer) -> None:
    """D09, SPEC rule 14: 500 claims are cancelled at random moments while jobs arrive."""
    chance = random.Random(7)
    total = 600
    done: dict[bytes, list[int]] = {}

    async def work(queue: aio.Queue) -> None:
        job = await queue.claim()
        assert job is not None
        done.setdefault(job.payload, []).append(job.attempts)
        await job.ack()

    async with opened(url, queue_name) as queue, opened(url, queue_name) as producer:
        # Until a job is in hand the task may go; then it is done.
        tasks = [asyncio.create_task(work(queue)) for _ in range(500)]

        async def cancel_some() -> None:
            for task in chance.sample(tasks, len(tasks)):
                await asyncio.sleep(chance.random() * 0.004)
                task.cancel()

        async def enqueue_some() -> None:
            for number in range(total):
                await producer.enqueue(b"%d" % number)
                await asyncio.sleep(chance.random() * 0.003)

        await asyncio.gather(cancel_some(), enqueue_some())
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()
        # What was in hand when its task was cancelled was being acked, and that goes on.
        while len(done) < total:
            job = await claim(queue)
            done.setdefault(job.payload, []).append(job.attempts)
            await job.ack()
        assert done == {b"%d" % number: [1] for number in range(total)}
        await eventually(lambda: observer.leftovers(queue_name) == [])


@asynchronous
async def test_claims_with_time_limits_from_outside(url: str, queue_name: str) -> None:
    """wait_for() cancels at the worst of moments: when a job is just coming."""
    async with opened(url, queue_name) as queue, opened(url, queue_name) as producer:
        seen: list[tuple[bytes, int]] = []

        async def work() -> None:
            while len(seen) < 200:
                with contextlib.suppress(asyncio.TimeoutError):
                    job = await asyncio.wait_for(queue.claim(), 0.003)
                    assert job is not None
                    seen.append((job.payload, job.attempts))
                    await job.ack()

        async def produce() -> None:
            for number in range(200):
                await producer.enqueue(b"%d" % number)
                await asyncio.sleep(0.002)

        await asyncio.gather(produce(), work(), work(), work())
        assert sorted(seen) == sorted((b"%d" % number, 1) for number in range(200))


@asynchronous
async def test_a_job_for_a_cancelled_task_goes_to_another(url: str, queue_name: str) -> None:
    """It does not even take the way over the server: its lease goes on."""
    async with opened(url, queue_name) as queue:
        for _ in range(30):
            first = asyncio.create_task(queue.claim())
            await asyncio.sleep(0)
            second = asyncio.create_task(claim(queue))
            await asyncio.sleep(0.005)
            stored = asyncio.create_task(queue.enqueue(b"x"))
            await asyncio.wait([first, stored], return_when=asyncio.FIRST_COMPLETED)
            first.cancel()
            await asyncio.wait([first, stored])
            if first.cancelled():
                job = await second
            else:
                job = first.result()  # type: ignore[assignment]
                second.cancel()
                await asyncio.wait([second])
            assert job.attempts == 1
            await job.ack()


@asynchronous
async def test_a_cancelled_block_hands_its_job_back(url: str, queue_name: str) -> None:
    async def work() -> None:
        async with await claim(queue) as job:
            started.set()
            assert job.attempts == 1
            await asyncio.sleep(60)

    async with opened(url, queue_name) as queue:
        await queue.enqueue(b"x")
        for _ in range(5):
            started = asyncio.Event()
            task = asyncio.create_task(work())
            await started.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        async with await claim(queue) as job:
            assert job.attempts == 1


@asynchronous
async def test_settlements_go_on_when_cancelled(
    url: str, queue_name: str, observer: Observer
) -> None:
    async with opened(url, queue_name) as queue:
        await queue.enqueue_many([b"1", b"2", b"3", b"4"])
        jobs = await queue.claim_many(4)
        tasks = [
            asyncio.create_task(call)
            for call in (
                jobs[0].ack(),
                jobs[1].nack("why"),
                jobs[2].release(),
                queue.ack_many(jobs[3:]),
            )
        ]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        left: list[aio.Job] = []
        while len(left) < 2:
            left.append(await claim(queue))
        assert sorted((job.payload, job.attempts) for job in left) == [(b"2", 2), (b"3", 1)]
        await queue.ack_many(left)
        await eventually(lambda: observer.leftovers(queue_name) == [])


@asynchronous
async def test_cancelled_enqueues_are_stored_once_or_not(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        tasks = [asyncio.create_task(queue.enqueue(b"%d" % n)) for n in range(3000)]
        await asyncio.sleep(0.01)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks)
        kept = {b"%d" % n for n, task in enumerate(tasks) if not task.cancelled()}
        seen = []
        while jobs := await queue.claim_many(1000, 0):
            seen += [job.payload for job in jobs]
            await queue.ack_many(jobs)
        assert len(set(seen)) == len(seen)
        assert kept <= set(seen)


@asynchronous
async def test_a_cancelled_ack_and_claim_hands_back(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        for _ in range(20):
            await queue.enqueue_many([b"1", b"2"])
            jobs = await queue.claim_many(1)
            task = asyncio.create_task(queue.ack_and_claim(jobs, 5))
            await asyncio.sleep(0.001 * random.random())
            task.cancel()
            await asyncio.wait([task])
            rest = await queue.claim_many(5) if task.cancelled() else task.result()
            assert [(job.payload, job.attempts) for job in rest] == [(b"2", 1)]
            await queue.ack_many(rest)
        await no_job(queue)


@asynchronous
async def test_what_is_opened_for_a_cancelled_task_is_closed(url: str, queue_name: str) -> None:
    async with aio.connect(url) as conn:
        before = cwist_jq._lib.live_handles()
        for delay in (0, 0.0005, 0.001, 0.002, 0.004):
            openings: list[aio.Opening[Any]] = [aio.connect(url), conn.queue(queue_name)]
            for opening in openings:
                task = asyncio.create_task(opening.__aenter__())
                await asyncio.sleep(delay)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    await task.result().close()
        await eventually(lambda: cwist_jq._lib.live_handles() == before)
