"""taskiq on NATS JetStream, a pull consumer."""

from __future__ import annotations

import asyncio

import peer
from taskiq.api import run_receiver_task
from taskiq_nats import PullBasedJetStreamBroker


class TaskiqNats(peer.Peer):
    async def open(self) -> None:
        self.broker = PullBasedJetStreamBroker(servers=[self.url])
        self.task = self.broker.task(task_name="job")(peer.async_job)
        await self.broker.startup()

    async def enqueue(self, stamp: int) -> None:
        await self.task.kiq(peer.PAYLOAD, stamp)

    async def enqueue_many(self, count: int) -> None:
        await asyncio.gather(*(self.enqueue(0) for _ in range(count)))

    async def work(self) -> None:
        await run_receiver_task(self.broker)


if __name__ == "__main__":
    peer.main(TaskiqNats)
