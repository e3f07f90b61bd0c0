"""Tells the server how jobs have ended: all that have ended meanwhile with each round trip."""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue

from cwist_jq.errors import Closed, Error
from cwist_jq.worker import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from cwist_jq.job import Job
    from cwist_jq.queue import Queue
    from cwist_jq.worker.intake import Intake
    from cwist_jq.worker.lane import Lane

    _T = TypeVar("_T")

__all__ = ["Settler"]

AT_ONCE = 1000


class Settler(threading.Thread):
    """The thread that acks, nacks and releases. So no handler waits for the server."""

    def __init__(self, lanes: Sequence[Lane], intake: Intake) -> None:
        """Settles what these lanes say."""
        super().__init__(name="cwist_jq settler", daemon=True)
        self._lanes = tuple(lanes)
        self._intake = intake
        self._returned: deque[tuple[Lane, list[Job]]] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rung = False
        self._ending = False
        for lane in lanes:
            lane.ring = self.ring

    def ring(self) -> None:
        """There is something to settle. Any thread may call it."""
        if not self._rung:
            self._rung = True
            self._bell.put(None)

    def give_back(self, lane: Lane, jobs: Iterable[Job]) -> None:
        """Releases jobs: no attempt is spent."""
        returned = list(jobs)
        if returned:
            self._returned.append((lane, returned))
            self.ring()

    def close(self) -> None:
        """The thread ends when nothing is left to settle."""
        self._ending = True
        self._bell.put(None)

    def run(self) -> None:
        """The thread."""
        while True:
            self._bell.get()
            self._rung = False  # before looking: what comes from now on rings again
            while self._settle_all() or self._release():
                pass
            if self._ending:
                return

    def _settle_all(self) -> bool:
        """Settles what there is now in all lanes; False when there is nothing."""
        found = [self._settle(lane) for lane in self._lanes]
        return True in found

    def _settle(self, lane: Lane) -> bool:
        """Settles what a lane has now; False when there is nothing."""
        acks = _taken(lane.acks)
        if acks:
            self._many(acks, "acked", lambda queue, jobs: queue.ack_many(jobs))
            self._intake.settled(lane, len(acks))
            acks.clear()
            return True
        others = _taken(lane.others)
        for job, outcome in others:
            try:
                outcome.settle(job)
            except Exception as error:  # noqa: BLE001 (whatever it is, the others must go on)
                self._failed(job, "handed back", error)
            self._intake.settled(lane, 1)
        return bool(others)

    def _release(self) -> bool:
        """Hands back what is to be handed back; False when there is nothing."""
        if not self._returned:
            return False
        lane, jobs = self._returned.popleft()
        self._many(jobs, "handed back", lambda queue, some: queue.release_many(some))
        self._intake.settled(lane, len(jobs))
        return True

    def _many(self, jobs: list[Job], what: str, settle: Callable[[Queue, list[Job]], None]) -> None:
        by_queue: dict[Queue, list[Job]] = {}
        for job in jobs:
            by_queue.setdefault(job._queue, []).append(job)  # noqa: SLF001 (one package)
        for queue, some in by_queue.items():
            try:
                settle(queue, some)
            except Error as error:  # noqa: PERF203 (each queue for itself)
                for job, result in zip(some, error.results or [error] * len(some)):
                    if isinstance(result, Exception):
                        self._failed(job, what, result)
            except Exception as error:  # noqa: BLE001 (the thread must go on)
                for job in some:
                    self._failed(job, what, error)

    @staticmethod
    def _failed(job: Job, what: str, error: Exception) -> None:
        """A handler may settle its job itself, and a job that is handed back may end meanwhile."""
        if not isinstance(error, Closed):
            log.unsettled(job, what, error)


def _taken(line: deque[_T]) -> list[_T]:
    """Takes what there is, up to a batch."""
    return [line.popleft() for _ in range(min(len(line), AT_ONCE))]
