"""Many tasks at once, and tasks that are cancelled for a minute."""

from __future__ import annotations

import asyncio
import collections
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable

from cwist_jq import aio
from tests import servers
from tests.aio.support import opened
from tests.observers import Observer

TASKS = 10_000
#: What a task of its own may need, with its payload of 1 KB; and what the library keeps beside.
TASK_BYTES = 8_000
ROUNDS = 5

_PRODUCER = """
import asyncio, json, re, sys
from pathlib import Path
from cwist_jq import aio

def peak():  # that of getrusage() is the parent's, if that was larger when it forked
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

async def main(url, name, tasks, rounds):
    async with aio.connect(url) as conn, conn.queue(name) as queue:
        await queue.enqueue(b"first")
        seen = [peak()]
        for _ in range(rounds):
            ids = await asyncio.gather(*[queue.enqueue(b"%1000d" % n) for n in range(tasks)])
            assert len(set(ids)) == tasks
            del ids
            seen.append(peak())
    print(json.dumps(seen))

url, name, tasks, rounds = sys.argv[1:]
asyncio.run(main(url, name, int(tasks), int(rounds)))
"""


def test_10000_enqueues_at_once(
    url: str, queue_name: str, observer: Observer, tell: Callable[..., None]
) -> None:
    """T01: the memory of a round is bounded, and the next rounds need no more."""
    words = [sys.executable, "-c", _PRODUCER, url, queue_name, str(TASKS), str(ROUNDS)]
    said = subprocess.run(words, cwd=servers.ROOT, check=True, capture_output=True, text=True)
    peaks = json.loads(said.stdout)
    tell(
        jobs=TASKS * ROUNDS,
        at_once=TASKS,
        peaks="/".join(f"{one / 1e6:.1f}" for one in peaks) + " MB",
    )
    assert observer.ready_and_claimed(queue_name) == 1 + TASKS * ROUNDS
    assert peaks[1] - peaks[0] < TASKS * TASK_BYTES
    assert peaks[-1] - peaks[1] < 0.2 * (peaks[1] - peaks[0]) + 4e6


def test_cancelled_claims_for_a_minute(
    url: str, queue_name: str, observer: Observer, tell: Callable[..., None]
) -> None:
    """D09, SPEC rule 14: nothing is lost, and no attempt is spent."""
    asyncio.run(_Storm().run(url, queue_name, tell))
    assert observer.leftovers(queue_name) == []
    assert observer.dead(queue_name) == []


class _Storm:
    """Tasks that claim and are cancelled, while others enqueue."""

    def __init__(self) -> None:
        self._chance = random.Random(8)
        self._end = time.monotonic() + 60
        self._done: collections.Counter[tuple[bytes, int]] = collections.Counter()
        self._stored = 0
        self._cancelled = 0

    async def run(self, url: str, name: str, tell: Callable[..., None]) -> None:
        """The whole minute, and what is left then."""
        async with opened(url, name) as queue, opened(url, name) as producer:
            tasks = [self._cancel(queue) for _ in range(20)]
            await asyncio.gather(self._produce(producer), *tasks)
            while jobs := await queue.claim_many(100, 2):
                await self._settle(queue, jobs)
        seen = {payload for payload, _ in self._done}
        tell(
            jobs=self._stored,
            cancelled=self._cancelled,
            lost=self._stored - len(seen),
            doubles=sum(self._done.values()) - len(seen),
            attempts_spent=sum(attempts > 1 for _, attempts in self._done),
        )
        wanted = collections.Counter((b"%d" % number, 1) for number in range(self._stored))
        assert self._done == wanted

    async def _produce(self, queue: aio.Queue) -> None:
        while time.monotonic() < self._end:
            await queue.enqueue(b"%d" % self._stored)
            self._stored += 1
            await asyncio.sleep(self._chance.random() * 0.004)

    async def _cancel(self, queue: aio.Queue) -> None:
        """Starts one task after the other and cancels it at a random moment."""
        while time.monotonic() < self._end:
            task = asyncio.create_task(self._work(queue))
            await asyncio.sleep(self._chance.random() * 0.02)
            self._cancelled += task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    async def _work(self, queue: aio.Queue) -> None:
        kind = self._chance.random()
        if kind < 0.3:
            await self._settle(queue, await queue.claim_many(self._chance.randint(1, 20)))
        elif kind < 0.6:
            async for job in queue:
                await self._settle(queue, [job])
                return
        else:
            found = await queue.claim()
            assert found is not None
            await self._settle(queue, [found])

    async def _settle(self, queue: aio.Queue, jobs: list[aio.Job]) -> None:
        """Once this has begun the acks are sent, whether the task is cancelled or not."""
        for job in jobs:
            self._done[job.payload, job.attempts] += 1
        await queue.ack_many(jobs)
