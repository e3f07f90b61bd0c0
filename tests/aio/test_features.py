"""What jobs and queues can do beyond enqueue and claim, through asyncio."""

from __future__ import annotations

import pytest

import cwist_jq
from tests.aio.support import asynchronous, claim, no_job, opened


@asynchronous
async def test_options_of_a_job(url: str, queue_name: str) -> None:
    """T05, T07: delay, dedupe key and headers, also when enqueues are gathered."""
    async with opened(url, queue_name) as queue:
        first = await queue.enqueue(b"1", dedupe_key="k", headers={"traceparent": "00-a"})
        again = await queue.enqueue(b"2", dedupe_key="k")
        assert isinstance(again, cwist_jq.DuplicateId)
        assert again == first
        late = await queue.enqueue(b"late", delay=0.5)
        job = await claim(queue)
        assert (job.id, dict(job.headers)) == (first, {"traceparent": "00-a"})
        await job.release(0.3)
        await no_job(queue)
        jobs = [await claim(queue), await claim(queue)]
        assert {(job.id, job.attempts) for job in jobs} == {(first, 1), (late, 1)}
        await queue.ack_many(jobs)
        assert not isinstance(await queue.enqueue(b"3", dedupe_key="k"), cwist_jq.DuplicateId)


@asynchronous
async def test_dead_letters(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        ids = await queue.enqueue_many([b"1", b"2", b"3"], type="t")
        for job in await queue.claim_many(3):
            await job.nack("no", dead=True)
        assert [letter.id async for letter in queue.dead] == ids[::-1]
        page = await queue.dead.page(2, oldest_first=True)
        assert [letter.id for letter in page] == ids[:2]
        assert page.mark is not None
        letter = await queue.dead.read(ids[0])
        assert (letter.payload, letter.cause, letter.reason) == (b"1", "rejected", "no")
        await queue.dead.purge(ids[0])
        with pytest.raises(cwist_jq.NotFound):
            await queue.dead.requeue(ids[0])
        await queue.dead.requeue(ids[1])
        assert await queue.dead.requeue_all("t") == 1
        assert await queue.dead.purge_all() == 0
        jobs = await queue.claim_many(5)
        assert [(job.id, job.attempts) for job in jobs] == [(ids[1], 1), (ids[2], 1)]
        await queue.ack_many(jobs)


@asynchronous
async def test_a_queue_as_a_whole(url: str, queue_name: str) -> None:
    async with opened(url, queue_name, max_length=3) as queue:
        await queue.enqueue_many([b"1", b"2", b"3"])
        with pytest.raises(cwist_jq.QueueFull):
            await queue.enqueue(b"4")
        assert (await queue.stats()).ready == 3
        await queue.pause()
        await no_job(queue)
        await queue.resume()
        job = await claim(queue)
        assert await queue.purge() == 2
        stats = await queue.stats()
        assert (stats.ready, stats.claimed, stats.enqueued, stats.paused) == (0, 1, 3, False)
        await job.ack()


@asynchronous
async def test_a_lease_is_kept(url: str, queue_name: str) -> None:
    """D02: longer than the visibility timeout, without a word of the loop."""
    async with opened(url, queue_name, visibility_timeout=0.5) as queue:
        await queue.enqueue(b"x")
        job = await claim(queue)
        await job.renew()
        await no_job(queue, 1.5)
        assert not job.lease_lost
        await job.ack()
