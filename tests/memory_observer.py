"""Looks at a queue in a store of this process.

No other client can see it, so this one goes through the library, by a connection of its own. The
tests of the engine in C look at it from inside.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from .observers import DeadLetter

if TYPE_CHECKING:
    import cwist_jq


def _ms(moment: dt.datetime | None) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1000)


class MemoryObserver:
    """Looks through statistics and dead letters, which change nothing."""

    engine = "memory"

    def __init__(self, url: str) -> None:
        import cwist_jq

        self._conn = cwist_jq.connect(url)
        self._queues: dict[str, cwist_jq.Queue] = {}

    def _queue(self, name: str) -> cwist_jq.Queue:
        if name not in self._queues:
            self._queues[name] = self._conn.queue(name, consumer="observer")
        return self._queues[name]

    def ready_and_claimed(self, queue: str) -> int:
        stats = self._queue(queue).stats()
        return stats.ready + stats.claimed

    def claimed(self, queue: str) -> int:
        return self._queue(queue).stats().claimed

    def workers(self, queue: str) -> int:
        """Those that hold jobs or wait for one."""
        return self._queue(queue).stats().consumers

    def delayed(self, queue: str) -> int:
        return self._queue(queue).stats().delayed

    def dead(self, queue: str) -> list[DeadLetter]:
        letters = self._queue(queue).dead
        return [self._letter(letters.read(one.id)) for one in reversed(list(letters))]

    @staticmethod
    def _letter(letter: cwist_jq.DeadLetter) -> DeadLetter:
        return DeadLetter(
            id=letter.id,
            type=letter.type,
            payload=letter.payload,
            attempts=letter.attempts,
            cause=letter.cause,
            reason=letter.reason,
            first_ms=_ms(letter.first_time),
            last_ms=_ms(letter.death_time),
            consumer=letter.consumer,
            others={name: value.encode() for name, value in letter.headers.items()},
        )

    def leftovers(self, queue: str) -> list[str]:
        stats = self._queue(queue).stats()
        counts = {
            "ready": stats.ready,
            "claimed": stats.claimed,
            "delayed": stats.delayed,
            "dead": stats.dead,
        }
        return [f"{count} {state}" for state, count in counts.items() if count]

    def visibility_ms(self, queue: str) -> int | None:
        raise NotImplementedError("no call tells it; mark the test with needs_server")

    def put(self, queue: str, payload: bytes, type: str | None = None) -> str:
        return self._queue(queue).enqueue(payload, type=type)

    def wipe(self, queue: str) -> None:
        # As far as it goes: claimed jobs stay.
        self._queue(queue).purge()
        self._queue(queue).dead.purge_all()

    def close(self) -> None:
        self._conn.close()
