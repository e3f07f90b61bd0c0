"""streaq: Redis streams, as here."""

from __future__ import annotations

import peer
from streaq import Worker


class Streaq(peer.Peer):
    async def open(self) -> None:
        self.worker = Worker(redis_url=self.url)
        self.task = self.worker.task()(peer.async_job)
        self.entered = False

    async def _enter(self) -> None:
        """For a program that only enqueues; a worker enters by itself."""
        if not self.entered:
            self.entered = True
            await self.worker.__aenter__()

    async def enqueue(self, stamp: int) -> None:
        await self._enter()
        await self.task.enqueue(peer.PAYLOAD, stamp)

    async def enqueue_many(self, count: int) -> None:
        await self._enter()
        await self.worker.enqueue_many([self.task.enqueue(peer.PAYLOAD, 0) for _ in range(count)])

    async def work(self) -> None:
        await self.worker.run_async()


if __name__ == "__main__":
    peer.main(Streaq)
