"""celery: its solo pool, so that one process is one worker. There is no bulk enqueue."""

from __future__ import annotations

import peer
from celery import Celery


class CeleryPeer(peer.Peer):
    can = ("enqueue", "drain", "wait")

    def open(self) -> None:
        self.app = Celery("bench", broker=self.url)
        self.app.conf.task_ignore_result = True
        self.app.conf.worker_redirect_stdouts = False
        self.task = self.app.task(name="job")(peer.job)

    def enqueue(self, stamp: int) -> None:
        self.task.delay(peer.PAYLOAD, stamp)

    def work(self) -> None:
        self.app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR"])


if __name__ == "__main__":
    peer.main(CeleryPeer)
