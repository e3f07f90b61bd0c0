"""faststream on a Redis stream with a consumer group."""

from __future__ import annotations

import asyncio
from typing import Any

import peer
from faststream import FastStream
from faststream.redis import RedisBroker, StreamSub


class Faststream(peer.Peer):
    async def open(self) -> None:
        self.broker = RedisBroker(self.url, logger=None)
        await self.broker.connect()

    async def enqueue(self, stamp: int) -> None:
        await self.broker.publish({"payload": peer.PAYLOAD, "stamp": stamp}, stream="bench")

    async def enqueue_many(self, count: int) -> None:
        await asyncio.gather(*(self.enqueue(0) for _ in range(count)))

    async def work(self) -> None:
        @self.broker.subscriber(
            stream=StreamSub("bench", group="bench", consumer="one", last_id="0")
        )
        async def handle(message: dict[str, Any]) -> None:
            peer.job(message["payload"], message["stamp"])

        await FastStream(self.broker, logger=None).run()


if __name__ == "__main__":
    peer.main(Faststream)
