"""rq: jobs are pickled; SimpleWorker runs them without a fork for each."""

from __future__ import annotations

import peer
from redis import Redis
from rq import Queue, SimpleWorker


class Rq(peer.Peer):
    def open(self) -> None:
        self.conn = Redis.from_url(self.url)
        self.queue = Queue("bench", connection=self.conn)

    def enqueue(self, stamp: int) -> None:
        self.queue.enqueue("peer.job", peer.PAYLOAD, stamp)

    def enqueue_many(self, count: int) -> None:
        data = Queue.prepare_data("peer.job", args=(peer.PAYLOAD, 0))
        self.queue.enqueue_many([data] * count)

    def work(self) -> None:
        SimpleWorker([self.queue], connection=self.conn).work(logging_level="ERROR")


if __name__ == "__main__":
    peer.main(Rq)
