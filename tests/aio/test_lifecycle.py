"""Each call of the asyncio interface once, on every server."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

import cwist_jq
from cwist_jq import aio
from tests.aio.support import asynchronous, claim, no_job, opened
from tests.observers import Observer

pytestmark = pytest.mark.servers("all")


@asynchronous
async def test_a_job_comes_and_goes(url: str, queue_name: str, observer: Observer) -> None:
    async with opened(url, queue_name) as queue:
        job_id = await queue.enqueue(b"hello", type="welcome")
        job = await claim(queue)
        assert (job.id, job.payload, job.type, job.attempts) == (job_id, b"hello", "welcome", 1)
        assert 0 < job.lease_remaining <= 30
        assert not job.lease_lost
        assert dict(job.headers) == {}
        await job.ack()
        assert (job.id, job.payload, job.lease_remaining) == (job_id, b"hello", 0.0)
        with pytest.raises(cwist_jq.Closed):
            await job.ack()
        assert await asyncio.to_thread(observer.leftovers, queue_name) == []


@asynchronous
async def test_what_is_opened_can_be_awaited_or_entered(url: str, queue_name: str) -> None:
    conn = await aio.connect(url)
    queue = await conn.queue(queue_name, visibility_timeout=dt.timedelta(seconds=20))
    assert (queue.name, queue.closed, conn.closed) == (queue_name, False, False)
    await queue.close()
    await queue.close()
    assert (queue.closed, conn.closed) == (True, False)
    async with conn, conn.queue(queue_name) as again:
        assert (again.closed, conn.closed) == (False, False)
        async with again:
            pass
    assert (again.closed, conn.closed) == (True, True)
    for entered in (conn, queue):
        with pytest.raises(cwist_jq.Closed):
            await entered.__aenter__()
    with pytest.raises(cwist_jq.Closed):
        await conn.queue(queue_name)
    with pytest.raises(cwist_jq.Closed):
        await queue.enqueue(b"x")
    with pytest.raises(cwist_jq.Closed):
        await queue.claim()


@asynchronous
async def test_a_job_settles_itself(url: str, queue_name: str) -> None:
    """The block ends well, fails, is cancelled, or has settled the job itself."""
    async with opened(url, queue_name) as queue:
        await queue.enqueue(b"x")
        for error, attempts in ((ValueError("bad"), 2), (asyncio.CancelledError(), 2)):
            with pytest.raises(type(error)):
                async with await claim(queue):
                    raise error
            job = await claim(queue)
            assert job.attempts == attempts
            await job.release()
        async with await claim(queue) as job:
            await job.nack("for a reason")
        async with await claim(queue) as job:
            assert job.attempts == 3
        await no_job(queue)
        with pytest.raises(cwist_jq.Closed, match=job.id):
            await job.__aenter__()


@asynchronous
async def test_a_job_that_cannot_be_handed_back_is_logged(
    url: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(url, queue_name) as queue:
        await queue.enqueue(b"x")
        job = await claim(queue)
        caplog.set_level(logging.WARNING, "cwist_jq")
        with contextlib.suppress(ZeroDivisionError):
            async with job:
                await queue.close()
                _ = 1 / 0
        assert f"job {job.id} of queue {queue_name} was not handed back" in caplog.text


@asynchronous
async def test_a_coroutine_that_is_closed_hands_its_job_back(url: str, queue_name: str) -> None:
    async def work() -> None:
        async with await claim(queue):
            await asyncio.Event().wait()

    async def answered(waits: asyncio.Future[object]) -> None:
        await asyncio.wait([waits])

    async with opened(url, queue_name) as queue:
        await queue.enqueue(b"x")
        held = work()
        steps = held.__await__()
        await answered(next(steps))  # for the claim
        next(steps)  # in the block
        held.close()
        assert (await claim(queue)).attempts == 1


@asynchronous
async def test_jobs_can_be_looped_over(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        ids = await queue.enqueue_many([b"1", b"2", b"3"])
        seen = []
        async for job in queue:
            async with job:
                seen.append(job.id)
            if len(seen) == 3:
                break
        assert seen == ids
        await no_job(queue)


@asynchronous
async def test_many_at_once(url: str, queue_name: str) -> None:
    async def numbers() -> AsyncIterator[bytes]:
        for number in range(1500):
            yield b"%d" % number

    async with opened(url, queue_name) as queue:
        ids = await queue.enqueue_many(numbers(), type="async")
        ids += await queue.enqueue_many(b"%d" % number for number in range(1500, 1600))
        ids += await queue.enqueue_many([b"1600", aio.Item(b"1601", "own")])
        assert len(set(ids)) == 1602
        jobs = await queue.claim_many(1000)
        while len(jobs) < 1602:
            jobs += await queue.claim_many(1000)
        assert [job.payload for job in jobs] == [b"%d" % number for number in range(1602)]
        assert [job.id for job in jobs] == ids
        assert [jobs[0].type, jobs[1500].type, jobs[1601].type] == ["async", None, "own"]
        await queue.release_many(jobs[:2])
        await queue.nack_many(jobs[2:4])
        await queue.ack_many(jobs[4:])
        again = await queue.claim_many(10, 1) + await queue.claim_many(10, 0)
        assert sorted((job.payload, job.attempts) for job in again) == [
            (b"0", 1),
            (b"1", 1),
            (b"2", 2),
            (b"3", 2),
        ]
        await queue.ack_many(again)
        assert await queue.claim_many(10, 0) == []


@asynchronous
async def test_ack_and_claim(url: str, queue_name: str) -> None:
    async with opened(url, queue_name) as queue:
        await queue.enqueue_many([b"1", b"2", b"3"])
        first = await queue.ack_and_claim([], 1)
        second = await queue.ack_and_claim(first, 5)
        assert [job.payload for job in first + second] == [b"1", b"2", b"3"]
        assert await queue.ack_and_claim(second, 5, 0) == []
        await queue.enqueue_many([b"4", b"5"])
        third = await queue.claim_many(1)
        await third[0].ack()
        with pytest.raises(cwist_jq.Closed) as caught:
            await queue.ack_and_claim(third, 5)
        assert isinstance(caught.value.results[0], cwist_jq.Closed)  # type: ignore[index]
        left: list[Any] = list(caught.value.claimed)
        assert [type(job) for job in left] == [aio.Job]
        waiting = asyncio.create_task(queue.ack_and_claim(left, 5))
        await asyncio.sleep(0.2)
        await queue.enqueue(b"6")
        last = await waiting
        assert [job.payload for job in last] == [b"6"]
        await queue.ack_many(last)


@asynchronous
async def test_retries_and_dead_letters(url: str, queue_name: str) -> None:
    async with opened(url, queue_name, max_retries=2) as queue:
        await queue.enqueue(b"x")
        await (await claim(queue)).nack("one", delay=0.2)
        job = await claim(queue)
        assert job.attempts == 2
        await job.nack("two")
        assert await queue.dead_count() == 1


@asynchronous
async def test_leases(url: str, queue_name: str) -> None:
    async with opened(url, queue_name, visibility_timeout=1.0) as queue:
        await queue.enqueue(b"x")
        job = await claim(queue)
        await asyncio.sleep(0.6)
        await job.extend()
        assert job.lease_remaining > 0.6
        again = await claim(queue)
        assert again.attempts == 2
        for settle in (job.extend, job.ack):
            with pytest.raises(cwist_jq.LeaseLost):
                await settle()
        await again.ack()


@asynchronous
async def test_errors_are_those_of_the_synchronous_interface(url: str, queue_name: str) -> None:
    """The same class, code and text, also when calls were gathered."""
    wrong: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("enqueue", ("text",), {}),
        ("enqueue", (b"x",), {"type": 7}),
        ("enqueue", (b"x",), {"type": "x" * 300}),
        ("enqueue", (b"x",), {"delay": -1}),
        ("enqueue", (b"x",), {"dedupe_key": ""}),
        ("enqueue", (b"x",), {"headers": {"Nats-X": "1"}}),
        ("enqueue", (b"x",), {"headers": {"X": 1}}),
        ("enqueue_many", ([b"x", "text"],), {}),
        ("enqueue_many", ([b"x"] * 1500 + ["text"],), {}),
        ("enqueue_all", ([b"x"] * 1001,), {}),
        ("claim", (-1,), {}),
        ("claim", ("soon",), {}),
        ("claim_many", (0,), {}),
        ("ack_many", (["no job"],), {}),
        ("ack_and_claim", ([], 1001), {}),
    ]
    with cwist_jq.connect(url) as plain:
        twin = plain.queue(queue_name)
        async with opened(url, queue_name) as queue:
            for name, arguments, options in wrong:
                with pytest.raises(cwist_jq.Error) as told:
                    getattr(twin, name)(*arguments, **options)
                calls = [getattr(queue, name)(*arguments, **options) for _ in range(3)]
                for error in await asyncio.gather(*calls, return_exceptions=True):
                    assert type(error) is type(told.value), name
                    assert error.text == told.value.text
                    assert error.code == told.value.code
                    count = None if told.value.results is None else len(told.value.results)
                    assert (None if error.results is None else len(error.results)) == count


@asynchronous
async def test_options_are_checked_when_a_queue_is_opened(url: str, queue_name: str) -> None:
    wrong: Any
    async with aio.connect(url) as conn:
        for wrong in ({"visibility_timeout": 0}, {"max_retries": 0}, {"retry_backoff": "no"}):
            with pytest.raises(cwist_jq.InvalidParam, match=next(iter(wrong))):
                await conn.queue(queue_name, **wrong)
    with pytest.raises(cwist_jq.InvalidParam, match="scheme"):
        await aio.connect("gopher://nowhere")


@asynchronous
async def test_objects_tell_what_they_are(url: str, queue_name: str, engine: str) -> None:
    async with aio.connect(url) as conn:
        async with conn.queue(queue_name) as queue:
            await queue.enqueue(b"x", type="t")
            job = await claim(queue)
            assert repr(job) == f"<cwist_jq.aio.Job {job.id!r} type='t' attempts=1>"
            assert repr(queue) == f"<cwist_jq.aio.Queue {queue_name!r} open>"
            assert repr(queue.dead) == f"<cwist_jq.aio.DeadLetters of {queue_name!r}>"
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(job)
            await job.ack()
        assert repr(queue) == f"<cwist_jq.aio.Queue {queue_name!r} closed>"
        assert repr(conn) == f"<cwist_jq.aio.Connection {engine} open>"
    assert repr(conn) == f"<cwist_jq.aio.Connection {engine} closed>"


@asynchronous
async def test_payloads_of_other_types_are_copied_at_once(url: str, queue_name: str) -> None:
    """A buffer may be used again while its task still waits, also one that was cancelled."""
    async with opened(url, queue_name) as queue:
        buffer = bytearray(b"before")
        stored = asyncio.create_task(queue.enqueue(memoryview(buffer)[:6]))
        await asyncio.sleep(0)
        buffer[:] = b"behind"
        await stored
        large = b"y" * 300_000
        await queue.enqueue(large)
        assert [(await claim(queue)).payload for _ in range(2)] == [b"before", large]
