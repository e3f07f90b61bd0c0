"""saq."""

from __future__ import annotations

import asyncio
from typing import Any

import peer
from saq import Queue, Worker


async def job(_context: Any, *, payload: str, stamp: int) -> None:
    peer.job(payload, stamp)


class Saq(peer.Peer):
    async def open(self) -> None:
        self.queue = Queue.from_url(self.url)
        await self.queue.connect()

    async def enqueue(self, stamp: int) -> None:
        await self.queue.enqueue("job", payload=peer.PAYLOAD, stamp=stamp)

    async def enqueue_many(self, count: int) -> None:
        await asyncio.gather(*(self.enqueue(0) for _ in range(count)))

    async def work(self) -> None:
        await Worker(self.queue, functions=[("job", job)]).start()


if __name__ == "__main__":
    peer.main(Saq)
