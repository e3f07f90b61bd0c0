"""Claims jobs of one queue and gives them to where they run."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

from cwist_jq.errors import Closed, Error, Interrupted, InvalidParam
from cwist_jq.worker import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cwist_jq.job import Job
    from cwist_jq.queue import Queue
    from cwist_jq.worker.intake import Intake
    from cwist_jq.worker.lane import Lane
    from cwist_jq.worker.settler import Settler

    Route = Callable[[Job], Lane]

__all__ = ["Claimer"]

# What a server cannot do now, it is asked for again after this time, doubled each time.
PAUSE_S = 0.1
PAUSE_MOST_S = 5.0


class Claimer(threading.Thread):
    """The thread of one queue.

    Attributes:
        queue: The queue.
        renew: Whether leases are to be renewed job by job, because the queue does not do it.
        failure: What ended the thread before it was told to end.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (what it stands between)
        self,
        queue: Queue,
        index: int,
        rank: int,
        intake: Intake,
        lanes: list[Lane],
        route: Route | None,
        settler: Settler,
    ) -> None:
        """route: to which lane a job goes; None when there is only one lane."""
        super().__init__(name=f"cwist_jq claims {queue.name}", daemon=True)
        self.queue = queue
        self.renew = False
        self.failure: BaseException | None = None
        self.failed: Callable[[], None] = lambda: None
        self.others: list[Claimer] = []
        self._index = index
        self._rank = rank
        self._intake = intake
        self._lanes = lanes
        self._route = route
        self._settler = settler
        self._ending = threading.Event()

    def interrupt(self) -> None:
        """Ends a claim that waits."""
        with suppress(Error):  # the queue is closed: so is the claim
            self.queue.interrupt()

    def end(self) -> None:
        """Claims no more; a claim that waits is to be interrupted, also again."""
        self._ending.set()

    def run(self) -> None:
        """The thread."""
        try:
            self._claim()
        except BaseException as error:  # noqa: BLE001 (the worker raises it)
            if not self._ending.is_set():
                self.failure = error
        self.failed()

    def _claim(self) -> None:
        pause = 0.0
        while (turn := self._intake.turn(self._index)) is not None:
            jobs: list[Job] = []
            try:
                count, waits = turn
                jobs = self.queue.claim_many(count, None if waits else 0)
                pause = 0.0
            except Interrupted:
                pass
            except (Closed, InvalidParam):
                raise
            except Exception as error:  # noqa: BLE001 (the server may be mended)
                pause = min(max(PAUSE_S, 2 * pause), PAUSE_MOST_S)
                log.LOGGER.warning("queue %s: %s; trying again", self.queue.name, error)
            self._hand_out(jobs)
            if pause:
                self._ending.wait(pause * random.uniform(0.7, 1.0))  # noqa: S311 (no secret)

    def _hand_out(self, jobs: list[Job]) -> None:
        """Gives each job to its lane."""
        if self.renew:
            self._renew(jobs)
        split = self._split(jobs)
        for lane, claimed in split:
            self._give(lane, claimed)
        # Counted last: until then it is a handler that waits.
        self._intake.came(self._index, [(lane, len(claimed)) for lane, claimed in split])
        if jobs and self.others:
            self._recall()

    def _give(self, lane: Lane, claimed: list[Job]) -> None:
        """Gives a lane its jobs, or the server those that are not to wait."""
        if self._ending.is_set():
            self._settler.give_back(lane, claimed)
            return
        lane.pace.came(claimed)
        jobs = self._spare_last(lane, claimed)
        if self.others and lane.room() < len(claimed) and not lane.pace.ahead(lane.slots):
            self._settler.give_back(lane, jobs)  # two claims waited for the same place
        else:
            lane.offer(jobs, self._rank)

    def _spare_last(self, lane: Lane, jobs: list[Job]) -> list[Job]:
        """Keeps no job waiting that is on its last delivery; the jobs that stay."""
        most = self.queue.max_retries
        if max([job.attempts for job in jobs]) < most:
            return jobs
        lane.pace.careful()
        free = max(0, lane.slots - lane.held)
        last = [job for job in jobs if job.attempts >= most]
        waiting = set(last[free:])
        self._settler.give_back(lane, last[free:])
        return [job for job in jobs if job not in waiting]

    def _renew(self, jobs: list[Job]) -> None:
        """Has the leases renewed one by one."""
        for job in jobs:
            try:
                job.renew()
            except Error as error:  # noqa: PERF203 (each job for itself)
                log.unsettled(job, "renewed", error)

    def _recall(self) -> None:
        """Ends the claims of other queues that wait for jobs which could not start now."""
        if any(lane.pace.ahead(lane.slots) for lane in self._lanes):
            return  # jobs are quick: there is a place soon
        awaited = self._intake.awaited()
        for other in self.others:
            if other._index in awaited:  # noqa: SLF001 (of this class)
                other.interrupt()

    def _split(self, jobs: list[Job]) -> list[tuple[Lane, list[Job]]]:
        """The jobs by lane."""
        if not jobs:
            return []
        if self._route is None:
            return [(self._lanes[0], jobs)]
        parts: dict[Lane, list[Job]] = {}
        for job in jobs:
            parts.setdefault(self._route(job), []).append(job)
        return list(parts.items())
