"""Handlers in threads of this process."""

from __future__ import annotations

import threading
from contextvars import copy_context
from time import perf_counter

from cwist_jq.worker.lane import Lane
from cwist_jq.worker.ready import Seat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwist_jq.job import Job
    from cwist_jq.worker.execution import Execution

__all__ = ["ThreadLane"]


class ThreadLane(Lane):
    """A pool of threads, each started when there is work for it."""

    def __init__(self, slots: int, ranks: int, execution: Execution) -> None:
        """At most `slots` threads."""
        super().__init__(slots, ranks)
        self._run = execution.run
        self._seats: list[Seat] = []

    def offer(self, jobs: Sequence[Job], rank: int) -> None:
        """Wakes or starts a thread for each job, as far as there are any."""
        self.ready.put(jobs, rank)
        missing = len(jobs) - self.ready.wake(len(jobs))
        for _ in range(min(missing, self.slots - len(self._seats))):
            seat = Seat()
            self._seats.append(seat)
            name = f"cwist_jq handler {len(self._seats)}"
            threading.Thread(target=self._work, args=(seat,), name=name, daemon=True).start()

    def running(self) -> list[Job]:
        """The jobs that run now."""
        jobs = [seat.job for seat in self._seats]
        return [job for job in jobs if job is not None]

    def _work(self, seat: Seat) -> None:
        """A thread. Each job gets a context of its own: what it sets there ends with it."""
        take, run, note = self.ready.take, self._run, self.pace.note
        acks, others = self.acks, self.others
        while (job := take(seat)) is not None:
            start = perf_counter()
            outcome = copy_context().run(run, job)
            note(perf_counter() - start)
            if outcome is None:
                acks.append(job)
            else:
                others.append((job, outcome))
            self.ring()
            seat.job = None
            del job  # it is not to be kept while this waits for the next one
