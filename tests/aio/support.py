"""What the tests of asyncio share. Each test is one coroutine, run by asyncio.run()."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

from cwist_jq import aio
from tests.waiting import PATIENCE

__all__ = ["Ticker", "asynchronous", "claim", "eventually", "no_job", "opened"]

#: No test takes longer; one that hangs fails and tells where.
LIMIT = 90.0


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Makes a test of a coroutine function; pytest sees the arguments."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), LIMIT))

    return run


@asynccontextmanager
async def opened(url: str, name: str, **options: Any) -> AsyncIterator[aio.Queue]:
    """A queue on a connection of its own."""
    async with aio.connect(url) as conn, conn.queue(name, **options) as queue:
        yield queue


async def claim(queue: aio.Queue, within: float = PATIENCE) -> aio.Job:
    """Claims a job that must come."""
    job = await queue.claim(within)
    assert job is not None, f"no job came in {within} s"
    return job


async def no_job(queue: aio.Queue, within: float = 0) -> None:
    """Claims, and no job may come."""
    job = await queue.claim(within)
    assert job is None, f"{job} came"


async def eventually(condition: Callable[[], Any], within: float = PATIENCE) -> None:
    """Asks until the answer is true; the loop goes on meanwhile."""
    end = time.monotonic() + within
    while not await asyncio.get_running_loop().run_in_executor(None, condition):
        assert time.monotonic() < end, f"not so after {within} s"
        await asyncio.sleep(0.01)


class Ticker:
    """A task that notes the longest time for which the loop did not come to it."""

    def __init__(self, pause: float = 0.002) -> None:
        self._pause = pause
        self.worst = 0.0

    async def _tick(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(self._pause)
            self.worst = max(self.worst, time.perf_counter() - before - self._pause)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
