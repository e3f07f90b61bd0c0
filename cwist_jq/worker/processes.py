"""Handlers in child processes: what kills one harms the one job that it runs."""

from __future__ import annotations

import threading
from contextvars import copy_context
from time import monotonic, perf_counter

from cwist_jq.worker import log
from cwist_jq.worker.errors import RemoteError
from cwist_jq.worker.lane import Lane
from cwist_jq.worker.outcome import NACK, RELEASE, Outcome, outcome_of
from cwist_jq.worker.process import Gone, Process
from cwist_jq.worker.ready import Seat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwist_jq.job import Job
    from cwist_jq.worker.child import Addresses
    from cwist_jq.worker.middleware import Hooks

__all__ = ["ProcessLane"]

# How often an idle child is looked at, to replace one that has died.
LOOK_S = 1.0
# After a child that died before it was ready the next one is started after this time, doubled each
# time.
PAUSE_S = 0.1
PAUSE_MOST_S = 5.0
# How long children that are told to end may take.
END_S = 2.0


class ProcessLane(Lane):
    """Child processes, each with a thread here that hands it one job at a time.

    The leases are renewed in this process, whatever a child does.
    """

    def __init__(self, count: int, ranks: int, addresses: Addresses, hooks: Hooks) -> None:
        """No process is started yet, and there is no place for a job."""
        super().__init__(0, ranks)
        self._addresses = addresses
        self._hooks = hooks
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._keepers = [_Keeper(self, number + 1) for number in range(count)]

    def start(self) -> None:
        """Starts the children; each is a place for a job when it is ready."""
        for keeper in self._keepers:
            keeper.start()

    def offer(self, jobs: Sequence[Job], rank: int) -> None:
        """Wakes a thread for each job."""
        self.ready.put(jobs, rank)
        self.ready.wake(len(jobs))

    def close(self) -> None:
        """Starts nothing more; idle children end."""
        super().close()
        self._ending.set()

    def running(self) -> list[Job]:
        """The jobs that run now."""
        jobs = [keeper.seat.job for keeper in self._keepers]
        return [job for job in jobs if job is not None]

    def abandon(self) -> None:
        """Kills the children that still work."""
        for keeper in self._keepers:
            if keeper.seat.job is not None:
                keeper.kill()
        self._join()
        for keeper in self._keepers:
            keeper.kill()  # those that had not become ready in time
        self._join()

    def _join(self) -> None:
        end = monotonic() + END_S
        for keeper in self._keepers:
            keeper.join(max(0.0, end - monotonic()))

    def spawn(self) -> Process | None:
        """Starts a child; None when the lane is closed."""
        return None if self._ending.is_set() else Process(self._addresses)

    def wait(self, seconds: float) -> None:
        """Waits, but not when the lane is closed."""
        self._ending.wait(seconds)

    def place(self, count: int) -> None:
        """There are so many places more, or fewer."""
        with self._lock:
            self.slots += count
        self.changed()

    def run(self, process: Process, job: Job) -> None:
        """Has a job done by a child.

        Raises:
            Gone: The child has ended. The job has been cared for.
        """
        start = perf_counter()
        try:
            if self._hooks:
                self._hooks.before(job)
        except BaseException as error:  # noqa: BLE001 (as a handler's)
            self._failed(job, outcome_of(error), error)
            return
        try:
            told = process.ask(job)
        except Gone as gone:
            self._interrupted(process, job, gone)
            raise
        seconds = perf_counter() - start
        self.pace.note(seconds)
        if told:
            outcome = Outcome(told["end"], told["delay"], told["reason"])
            self._failed(job, outcome, RemoteError(told["trace"] or told["reason"], outcome))
            return
        if self._hooks:
            self._hooks.after(job)
        log.done(job, seconds)
        self.acks.append(job)
        self.ring()

    def _interrupted(self, process: Process, job: Job, gone: Gone) -> None:
        """A child has ended. If it had not begun with the job, another one is to have it."""
        if not process.began:
            if self._hooks:
                words = f"the process ended before the handler began: {gone}"
                self._hooks.failed(job, RemoteError(words, Outcome(RELEASE)))
            self.ready.put_back(job)
            self.ready.wake(1)
            return
        reason = f"the process that ran the handler ended: {gone}"
        outcome = Outcome(NACK, None, reason)
        self._failed(job, outcome, RemoteError(reason, outcome))

    def _failed(self, job: Job, outcome: Outcome, error: BaseException) -> None:
        log.ended(job, outcome, error)
        if self._hooks:
            self._hooks.failed(job, error)
        self.others.append((job, outcome))
        self.ring()


class _Keeper(threading.Thread):
    """The thread that keeps one child alive and busy."""

    def __init__(self, lane: ProcessLane, number: int) -> None:
        super().__init__(name=f"cwist_jq child {number}", daemon=True)
        self.seat = Seat()
        self._lane = lane
        self._process: Process | None = None

    def run(self) -> None:
        """The thread."""
        lane = self._lane
        pause = PAUSE_S
        while (process := lane.spawn()) is not None:
            self._process = process
            try:
                process.wait()
            except Gone as gone:
                log.LOGGER.error("a child process ended before it was ready: %s", gone)
                lane.wait(pause)
                pause = min(2 * pause, PAUSE_MOST_S)
                continue
            pause = PAUSE_S
            lane.place(1)
            try:
                self._serve(process)
                process.end()
            except Gone as gone:
                log.LOGGER.warning("a child process ended: %s", gone)
            finally:
                lane.place(-1)

    def _serve(self, process: Process) -> None:
        """Hands out jobs until there are no more, or the child has ended."""
        lane, seat = self._lane, self.seat
        while not lane.ready.closed:
            job = lane.ready.take(seat, LOOK_S)
            if job is None:
                process.look()
                continue
            try:
                copy_context().run(lane.run, process, job)  # as in threads, for the middleware
            finally:
                seat.job = job = None

    def kill(self) -> None:
        """Ends the child, whatever it does."""
        process = self._process
        if process is not None:
            process.kill()
