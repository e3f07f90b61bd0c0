"""One run of a worker: its threads, from the first claim to the last ack."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from time import monotonic

from cwist_jq.worker import log
from cwist_jq.worker.claimer import Claimer
from cwist_jq.worker.execution import Execution
from cwist_jq.worker.intake import Intake
from cwist_jq.worker.settler import Settler
from cwist_jq.worker.threads import ThreadLane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwist_jq.queue import Queue
    from cwist_jq.worker.claimer import Route
    from cwist_jq.worker.lane import Lane
    from cwist_jq.worker.middleware import Hooks
    from cwist_jq.worker.order import Order
    from cwist_jq.worker.registry import Registry

__all__ = ["NOW", "STOP", "Session"]

# What a session is told.
STOP = "stop"
NOW = "stop at once"
LOOK = "look"

TICK_S = 0.25
# How long the server may take to hear how the last jobs ended; the operation timeout is shorter.
LAST_WORDS_S = 10.0
LAST_WORDS_NOW_S = 1.0
# How long claims that were interrupted may take to end.
CLAIMS_END_S = 1.0


class Session:
    """Starts everything, waits until it is told to stop, and stops everything.

    The thread that runs it never waits for a server, so that it can be told at any time.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (what a worker was told)
        self,
        queues: Sequence[tuple[Queue, bool]],
        order: Order,
        registry: Registry,
        hooks: Hooks,
        concurrency: int,
        processes: int,
    ) -> None:
        """queues: each with whether its leases are to be renewed job by job."""
        self._inbox: SimpleQueue[str] = SimpleQueue()
        self._lanes, route = _lanes(registry, hooks, order.ranks, concurrency, processes)
        self._intake = Intake(len(queues), order, self._lanes)
        self._settler = Settler(self._lanes, self._intake)
        self._claimers = []
        for index, (queue, renew) in enumerate(queues):
            rank = order.rank(index)
            claimer = Claimer(queue, index, rank, self._intake, self._lanes, route, self._settler)
            claimer.renew = renew
            claimer.failed = self._look
            self._claimers.append(claimer)
        for claimer in self._claimers:
            claimer.others = [other for other in self._claimers if other is not claimer]
        for lane in self._lanes:
            lane.changed = self._intake.changed
        self._intake.emptied = self._look

    def tell(self, word: str) -> None:
        """STOP or NOW. Any thread may say it, and a signal handler."""
        self._inbox.put(word)

    def _look(self) -> None:
        """Something may have changed that the end waits for."""
        self._inbox.put(LOOK)

    def run(self, shutdown_timeout: float) -> None:
        """Works until it is told to stop; raises what ended a claim for good."""
        self._settler.start()
        for lane in self._lanes:
            lane.start()
        for claimer in self._claimers:
            claimer.start()
        word = self._work()
        self._stop(word, shutdown_timeout)
        for claimer in self._claimers:
            if claimer.failure is not None:
                raise claimer.failure

    def _work(self) -> str:
        """Waits for the word to stop, and meanwhile hands back what does not start soon."""
        while True:
            word = self._hear(TICK_S)
            if word in {STOP, NOW}:
                return word
            if any(claimer.failure is not None for claimer in self._claimers):
                return STOP
            for lane in self._lanes:
                self._settler.give_back(lane, lane.stale())

    def _hear(self, seconds: float) -> str:
        try:
            return self._inbox.get(timeout=max(0.0, seconds))
        except Empty:
            return LOOK

    def _stop(self, word: str, shutdown_timeout: float) -> None:
        """Claims nothing more, lets what runs end, hands back the rest."""
        end = monotonic() + shutdown_timeout
        for claimer in self._claimers:
            claimer.end()
        self._intake.close()
        for lane in self._lanes:
            lane.close()
        now = word is NOW
        while not now and monotonic() < end and (self._claiming() or self._waiting()):
            now = self._hear(min(0.05 if self._claiming() else TICK_S, end - monotonic())) is NOW
        end = monotonic() + CLAIMS_END_S
        while self._claiming() and monotonic() < end:
            self._hear(0.02)
        for lane in self._lanes:
            self._settler.give_back(lane, lane.ready.clear())
            left = lane.running()
            self._settler.give_back(lane, left)
            for job in left:
                log.handed_back(job)
        self._settler.close()
        self._join_settler(now=now)
        for lane in self._lanes:
            lane.abandon()

    def _claiming(self) -> bool:
        """Whether there are claims yet; ends those that wait, and hands back what waits here."""
        claiming = [claimer for claimer in self._claimers if claimer.is_alive()]
        for claimer in claiming:
            claimer.interrupt()
        if not claiming:
            for lane in self._lanes:
                self._settler.give_back(lane, lane.ready.clear())
        return bool(claiming)

    def _waiting(self) -> bool:
        """Whether there are jobs yet."""
        return self._intake.held() > 0

    def _join_settler(self, *, now: bool) -> None:
        """Waits until the server has heard how the last jobs ended."""
        end = monotonic() + (LAST_WORDS_NOW_S if now else LAST_WORDS_S)
        while self._settler.is_alive() and monotonic() < end:
            if self._hear(0.02) is NOW and not now:
                now, end = True, monotonic() + LAST_WORDS_NOW_S


def _lanes(
    registry: Registry, hooks: Hooks, ranks: int, concurrency: int, processes: int
) -> tuple[list[Lane], Route | None]:
    """A lane for each kind of handler that there is, and which job goes where."""
    handlers = registry.all()
    plain = [handler for handler in handlers if not handler.is_async]
    execution = Execution(registry, hooks)
    lanes: list[Lane] = []
    if len(plain) < len(handlers):
        from cwist_jq.worker.coroutines import LoopLane

        lanes.append(LoopLane(concurrency, ranks, execution))
    if plain and processes:
        from cwist_jq.worker.processes import ProcessLane

        addresses = [(handler.types, *handler.address()) for handler in plain]
        lanes.append(ProcessLane(processes, ranks, addresses, hooks))
    elif plain or not lanes:
        lanes.append(ThreadLane(concurrency, ranks, execution))
    if len(lanes) == 1:
        return lanes, None
    loop, other = lanes

    def route(job: object) -> Lane:
        handler = registry.find(job.type)  # type: ignore[attr-defined]  # a Job
        return loop if handler is not None and handler.is_async else other

    return lanes, route
