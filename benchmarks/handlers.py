"""Our worker, as a program in the form of benchmarks/peers, with one word more.

    python -m benchmarks.handlers KIND URL OPERATION COUNT

KIND is sync or async, what the handler is, or claim: a loop of claim() and ack() without a worker,
which an idle worker's latency is compared with.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import cwist_jq
from cwist_jq.worker import Worker, enqueue_json

from .peers import peer

QUEUE = "bench"
TYPE = "job"


def _handler(data: Any) -> None:
    peer.job(data["payload"], data["stamp"])


async def _async_handler(data: Any) -> None:
    await peer.async_job(data["payload"], data["stamp"])


class Ours(peer.Peer):
    """A queue of the library, and its Worker with the default options."""

    handler: Any = None

    def open(self) -> None:
        """Connects."""
        self.conn = cwist_jq.connect(self.url)
        self.queue = self.conn.queue(QUEUE)

    def enqueue(self, stamp: int) -> None:
        """One job."""
        enqueue_json(self.queue, {"payload": peer.PAYLOAD, "stamp": stamp}, type=TYPE)

    def enqueue_many(self, count: int) -> None:
        """A batch."""
        payload = json.dumps({"payload": peer.PAYLOAD, "stamp": 0}).encode()
        self.queue.enqueue_many([payload] * count, type=TYPE)

    def work(self) -> None:
        """Runs the worker."""
        worker = Worker(self.conn, QUEUE)
        worker.handler(TYPE)(self.handler)
        worker.run()


class Sync(Ours):
    """Handlers in threads."""

    handler = staticmethod(_handler)


class Async(Ours):
    """Handlers on the loop."""

    handler = staticmethod(_async_handler)


class Claim(Ours):
    """No worker."""

    def work(self) -> None:
        """Claims and acks one at a time."""
        for job in self.queue:
            _handler(json.loads(job.payload))
            job.ack()


KINDS = {"sync": Sync, "async": Async, "claim": Claim}

if __name__ == "__main__":
    peer.main(KINDS[sys.argv.pop(1)])
