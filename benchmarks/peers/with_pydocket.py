"""pydocket: Redis streams. With its default of 10 jobs at once it drains 40 a second."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import peer
from docket import Docket, Worker

LOOK = timedelta(milliseconds=1)


class Pydocket(peer.Peer):
    async def open(self) -> None:
        self.stack = AsyncExitStack()
        self.docket = await self.stack.enter_async_context(Docket("bench", url=self.url))
        self.docket.register(peer.async_job)

    async def enqueue(self, stamp: int) -> None:
        await self.docket.add(peer.async_job)(peer.PAYLOAD, stamp)

    async def enqueue_many(self, count: int) -> None:
        await asyncio.gather(*(self.enqueue(0) for _ in range(count)))

    async def work(self) -> None:
        async with Worker(self.docket, concurrency=20, minimum_check_interval=LOOK) as worker:
            await worker.run_forever()


if __name__ == "__main__":
    peer.main(Pydocket)
