"""arq: looks for jobs every half second."""

from __future__ import annotations

import asyncio
from typing import Any

import peer
from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker


async def job(_context: Any, payload: str, stamp: int) -> None:
    peer.job(payload, stamp)


class Arq(peer.Peer):
    async def open(self) -> None:
        self.settings = RedisSettings.from_dsn(self.url)
        self.pool = await create_pool(self.settings)

    async def enqueue(self, stamp: int) -> None:
        await self.pool.enqueue_job("job", peer.PAYLOAD, stamp)

    async def enqueue_many(self, count: int) -> None:
        await asyncio.gather(*(self.enqueue(0) for _ in range(count)))

    async def work(self) -> None:
        worker = Worker([func(job, name="job")], redis_settings=self.settings, handle_signals=False)
        await worker.async_run()


if __name__ == "__main__":
    peer.main(Arq)
