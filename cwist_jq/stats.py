"""What a queue holds, and what one queue object did with it."""

from __future__ import annotations

from typing import NamedTuple

from cwist_jq import _lib_upkeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq._native import QueueHandle

__all__ = ["Stats", "stats_of"]


class Stats(NamedTuple):
    """Statistics of a queue. Made by Queue.stats().

    Attributes:
        ready: Jobs that a claim would bring now.
        claimed: Jobs that workers hold. Jobs whose leases ran out count here until they are brought
            back; on NATS also those that wait after a nack.
        delayed: Jobs that wait for their time.
        dead: Dead letters.
        oldest_ready: How many seconds the job that is ready longest has been so; None: none is.
        consumers: Consumers that hold or wait for jobs, as far as the server knows. On Redis those
            that had a job; on NATS the claims that wait, and at least 1 while jobs are claimed.
        paused: True between Queue.pause() and Queue.resume(), by anyone.
        enqueued: Jobs that this queue object stored since it was opened, duplicates not counted.
        delivered: Jobs that it claimed.
        acked: Jobs that it acked.
        nacked: Jobs that it nacked, those that became dead letters too.
        released: Jobs that it handed back, by itself or when asked to.
        buried: Jobs that it moved to the dead letters.
    """

    ready: int
    claimed: int
    delayed: int
    dead: int
    oldest_ready: float | None
    consumers: int
    paused: bool
    enqueued: int
    delivered: int
    acked: int
    nacked: int
    released: int
    buried: int


def stats_of(queue: QueueHandle) -> Stats:
    """Does what Queue.stats() says."""
    told = _lib_upkeep.stats(queue)
    age = told.oldest_ready_ms
    return Stats(
        ready=told.ready,
        claimed=told.claimed,
        delayed=told.delayed,
        dead=told.dead,
        oldest_ready=age / 1000 if age else None,
        consumers=told.consumers,
        paused=told.paused,
        enqueued=told.enqueued,
        delivered=told.delivered,
        acked=told.acked,
        nacked=told.nacked,
        released=told.released,
        buried=told.buried,
    )
