"""huey: one worker thread, which waits in a blocking pop. There is no bulk enqueue."""

from __future__ import annotations

import threading

import peer
from huey import RedisHuey


class Huey(peer.Peer):
    can = ("enqueue", "drain", "wait")

    def open(self) -> None:
        self.huey = RedisHuey("bench", url=self.url, results=False)
        self.task = self.huey.task(name="job")(peer.job)

    def enqueue(self, stamp: int) -> None:
        self.task(peer.PAYLOAD, stamp)

    def work(self) -> None:
        self.huey.create_consumer(workers=1).start()
        threading.Event().wait()


if __name__ == "__main__":
    peer.main(Huey)
