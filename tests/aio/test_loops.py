"""Several loops, loops that end, forks, and the end of the interpreter."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import cwist_jq
from cwist_jq import aio
from tests.aio.support import asynchronous, claim, no_job, opened
from tests.servers import ROOT
from tests.waiting import eventually


def test_loops_of_several_threads_share_a_queue(url: str, queue_name: str) -> None:
    """F06: each task gets its own answers."""
    ready = threading.Barrier(4)
    seen: list[bytes] = []
    shared: list[aio.Queue] = []

    async def work(number: int) -> None:
        if number == 0:
            conn = await aio.connect(url)
            shared.append(await conn.queue(queue_name))
        await asyncio.to_thread(ready.wait)
        queue = shared[0]
        ids = await asyncio.gather(*[queue.enqueue(b"%d" % (number * 100 + n)) for n in range(100)])
        assert len(set(ids)) == 100
        jobs = await asyncio.gather(*[claim(queue) for _ in range(100)])
        seen.extend(job.payload for job in jobs)
        await asyncio.gather(*[job.ack() for job in jobs])

    threads = [threading.Thread(target=asyncio.run, args=(work(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(b"%d" % number for number in range(400))

    async def end() -> None:
        await no_job(shared[0])
        await shared[0]._connection.close()

    asyncio.run(end())


def test_a_loop_that_ends_takes_no_job_with_it(url: str, queue_name: str) -> None:
    """Tasks are pending when the loop ends; another loop uses the same objects then."""
    kept: list[aio.Connection] = []

    async def leave() -> aio.Queue:
        conn = await aio.connect(url)
        kept.append(conn)
        queue = await conn.queue(queue_name)
        pending.extend(asyncio.ensure_future(queue.claim()) for _ in range(20))
        pending.extend(asyncio.ensure_future(queue.enqueue(b"x")) for _ in range(30))
        await asyncio.sleep(0.05)
        return queue

    async def go_on(queue: aio.Queue) -> None:
        left = []
        while job := await queue.claim(0.5):
            left.append(job.attempts)
            await job.ack()
        # Twenty may have been in hand: nobody acked them.
        assert set(left) <= {1}
        await queue.enqueue(b"after")
        await (await claim(queue)).ack()
        await kept[0].close()

    pending: list[asyncio.Future[object]] = []
    queue = asyncio.run(leave())
    asyncio.run(go_on(queue))


def test_a_closed_loop_gets_nothing(url: str, queue_name: str) -> None:
    """A loop that stops without a word: what was asked for is handed back."""
    loop = asyncio.new_event_loop()

    async def start() -> tuple[aio.Connection, aio.Queue]:
        conn = await aio.connect(url)
        return conn, await conn.queue(queue_name)

    conn, queue = loop.run_until_complete(start())
    task = loop.create_task(queue.claim())
    loop.run_until_complete(asyncio.sleep(0.2))
    loop.close()
    with cwist_jq.connect(url) as plain:
        twin = plain.queue(queue_name)
        twin.enqueue(b"x")
        job = twin.claim(5.0)
        assert job is not None
        assert job.attempts == 1
        job.ack()
    asyncio.run(conn.close())
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task
    gc.collect()


@asynchronous
async def test_close_sends_what_was_given_before(url: str, queue_name: str) -> None:
    async with aio.connect(url) as conn:
        queue = await conn.queue(queue_name)
        await queue.enqueue_many([b"x"] * 10)
        jobs = await queue.claim_many(10)
        acks = [asyncio.create_task(job.ack()) for job in jobs[:4]]
        backs = [asyncio.create_task(job.release()) for job in jobs[4:7]]
        nacks = [asyncio.create_task(job.nack("x")) for job in jobs[7:]]
        more = [asyncio.create_task(queue.enqueue(b"y")) for _ in range(2500)]
        await asyncio.sleep(0)
        await asyncio.gather(queue.close(), queue.close())
        await asyncio.gather(*acks, *backs, *nacks)
        assert len(set(await asyncio.gather(*more))) == 2500
        async with conn.queue(queue_name) as again:
            seen = []
            while found := await again.claim_many(1000, 1):
                seen += [(job.payload, job.attempts) for job in found]
                await again.ack_many(found)
        assert sorted(seen) == [(b"x", 1)] * 3 + [(b"x", 2)] * 3 + [(b"y", 1)] * 2500


def test_nothing_stays_alive(url: str, queue_name: str) -> None:
    """Neither handles in C nor threads, also when a queue was only dropped."""

    async def use() -> None:
        async with aio.connect(url) as conn:
            for _ in range(5):
                queue = await conn.queue(queue_name)
                await queue.enqueue(b"x")
                await (await claim(queue)).ack()

    before = cwist_jq._lib.live_handles()
    asyncio.run(use())
    gc.collect()
    eventually(lambda: cwist_jq._lib.live_handles() == before)
    eventually(lambda: not any(t.name.startswith("cwist_jq") for t in threading.enumerate()))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@asynchronous
async def test_a_forked_child_is_told(url: str, queue_name: str) -> None:
    """F01: at once, and the parent goes on."""
    async with opened(url, queue_name) as queue:
        await queue.enqueue_many([b"1", b"2"])
        job = await claim(queue)
        waiting = asyncio.create_task(claim(queue))
        pid = os.fork()
        if pid == 0:  # in the child no loop runs: a new one is made
            os._exit(_told(queue, job))
        ended = await asyncio.to_thread(os.waitpid, pid, 0)
        assert os.waitstatus_to_exitcode(ended[1]) == 0
        await job.ack()
        await (await waiting).ack()


def _told(queue: aio.Queue, job: aio.Job) -> int:
    """In the child: how many calls were not refused."""

    async def ask() -> int:
        wrong = 0
        calls = (
            queue.enqueue(b"x"),
            queue.claim(5),
            queue.stats(),
            job.ack(),
            queue._connection.queue("other").__aenter__(),
        )
        for call in calls:
            try:
                await asyncio.wait_for(call, 5)
            except cwist_jq.Closed:
                continue
            wrong += 1
        await asyncio.wait_for(queue._connection.close(), 5)
        return wrong

    answers: list[int] = []
    # The thread that forked still counts as running its loop; another one may run a new loop.
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(ask())))
    thread.start()
    thread.join(20)
    return answers[0] if answers else 99


PROGRAM = """
import asyncio, sys
from cwist_jq import aio

async def main():
    conn = await aio.connect(sys.argv[1])
    queue = await conn.queue(sys.argv[2])
    await queue.enqueue(b"x")
    held = await queue.claim()
    tasks = [asyncio.create_task(queue.claim()) for _ in range(5)]
    await asyncio.sleep(0.2)
    globals().update(conn=conn, queue=queue, held=held, tasks=tasks)
    if sys.argv[3] == "exit":
        sys.exit(3)
    if sys.argv[3] == "raise":
        raise RuntimeError("on purpose")

asyncio.run(main())
"""


@pytest.mark.parametrize(("how", "code"), [("return", 0), ("exit", 3), ("raise", 1)])
def test_a_program_ends_with_all_open(url: str, queue_name: str, how: str, code: int) -> None:
    """F07: with an unacked job, tasks in claims and a connection that nobody closed."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, url, queue_name, how],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    assert ("on purpose" in done.stderr) == (how == "raise")
    assert time.monotonic() - start < 15
