"""dramatiq: one process of eight threads, its default. There is no bulk enqueue."""

from __future__ import annotations

import threading

import dramatiq
import peer
from dramatiq.brokers.redis import RedisBroker


class Dramatiq(peer.Peer):
    can = ("enqueue", "drain", "wait")

    def open(self) -> None:
        self.broker = RedisBroker(url=self.url)
        dramatiq.set_broker(self.broker)
        self.actor = dramatiq.actor(peer.job, actor_name="job")

    def enqueue(self, stamp: int) -> None:
        self.actor.send(peer.PAYLOAD, stamp)

    def work(self) -> None:
        dramatiq.Worker(self.broker, worker_threads=8).start()
        threading.Event().wait()


if __name__ == "__main__":
    peer.main(Dramatiq)
