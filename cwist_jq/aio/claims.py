"""The claims of a queue's tasks, made by one thread.

The thread asks the server for as many jobs as are waited for, never more, and hands each to the
task that has waited longest. It is there while tasks wait. A claim on the server ends when the
first of the tasks has waited its time, so that each learns what a claim of its own would: that no
job came, or that the server could not be reached.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from typing import TYPE_CHECKING

from cwist_jq import _lib, options
from cwist_jq.aio.tickets import Ticket, post
from cwist_jq.errors import Closed, ConnectionFailed, Error
from cwist_jq.job import job_of, jobs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwist_jq.aio.tickets import Answer
    from cwist_jq.job import Job
    from cwist_jq.queue import Queue

__all__ = ["Claims"]

#: How long the thread stays when no task waits, in seconds.
IDLE = 5.0
#: How often it looks whether its claim is still what the tasks want.
SLICE_MS = 50
#: Tasks that have waited their time within so many seconds may be told together.
TOGETHER = 0.02


class _Waiter:
    """A task that waits for 1 to `most` jobs until a moment of the monotonic clock."""

    __slots__ = ("deadline", "most", "number", "ticket")

    def __init__(self, ticket: Ticket[list[Job]], most: int, timeout_ms: int) -> None:
        self.ticket = ticket
        self.most = most
        for_ever = timeout_ms == options.FOR_EVER_MS
        self.deadline = math.inf if for_ever else time.monotonic() + timeout_ms / 1000
        self.number = 0


class Claims:
    """Claims jobs of one queue for all tasks that wait, of any loop."""

    def __init__(self, queue: Queue, hand_back: Callable[[Job], None]) -> None:
        """Makes one for which nobody waits.

        Args:
            queue: The queue. Nobody else makes blocked claims through this object.
            hand_back: Releases a job that nobody wants; must not wait.
        """
        self._queue = queue
        self._hand_back = hand_back
        self._change = threading.Condition(threading.Lock())
        self._waiters: dict[int, _Waiter] = {}  # by number: in the order in which they came
        # A heap: deadline and number of those that do not wait for ever, and of former ones. It
        # holds no ticket, so that no job is kept alive that its task has dropped.
        self._ends: list[tuple[float, int]] = []
        self._demand = 0  # jobs that are waited for
        self._newest = 0  # the number of the waiter that came last
        self._thread: threading.Thread | None = None
        self._asked = 0  # jobs that the claim under way may bring
        self._asked_for = 0  # the newest waiter when it began
        self._until = math.inf  # when it ends
        self._told = -math.inf  # when tasks were last told that no job came in time
        self._stale = False  # it is not what the tasks want any more
        self._closed = False

    # ---- tasks ----

    async def claim(self, most: int, timeout_ms: int) -> list[Job]:
        """Waits for 1 to `most` jobs; an empty list when none came in time."""
        ticket: Ticket[list[Job]] = Ticket(self._take_back)
        waiter = _Waiter(ticket, most, timeout_ms)
        self._add(waiter)
        try:
            return await ticket.wait()
        except BaseException:
            with self._change:
                self._remove(waiter)
            raise

    def _add(self, waiter: _Waiter) -> None:
        with self._change:
            if self._closed:
                raise Closed(f"the queue {self._queue.name} is closed")
            self._newest = waiter.number = self._newest + 1
            self._waiters[waiter.number] = waiter
            self._demand += waiter.most
            if waiter.deadline != math.inf:
                if len(self._ends) > 2 * len(self._waiters) + 64:
                    waiters = self._waiters.values()
                    self._ends = [(w.deadline, w.number) for w in waiters if w.deadline != math.inf]
                    heapq.heapify(self._ends)
                else:
                    heapq.heappush(self._ends, (waiter.deadline, waiter.number))
            if waiter.deadline < self._until:
                self._stale = True
            if self._thread is None:
                self._start()
            self._change.notify_all()

    def _start(self) -> None:
        name = f"cwist_jq claim {self._queue.name}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._thread = None
            self._waiters.clear()
            self._ends.clear()
            self._demand = 0
            raise

    def _remove(self, waiter: _Waiter) -> None:
        """Takes a waiter off, if it is still there. The lock is held."""
        if self._waiters.pop(waiter.number, None) is None:
            return
        self._demand -= waiter.most
        if self._demand < self._asked:
            self._stale = True

    def interrupt(self, error: Error) -> None:
        """Raises an error of this kind in all tasks that wait."""
        with self._change:
            waiters = list(self._waiters.values())
            for waiter in waiters:
                self._remove(waiter)
        post([(waiter.ticket, error.again()) for waiter in waiters])

    def close(self) -> None:
        """Lets no task wait any more: Closed. The thread ends soon."""
        with self._change:
            self._closed = self._stale = True
            self._change.notify_all()
        self.interrupt(Closed(f"the queue {self._queue.name} was closed during the claim"))

    def join(self) -> None:
        """Waits for the thread's end, when what it had asked for is called back."""
        thread = self._thread
        if thread is not None:
            thread.join()

    # ---- the thread ----

    def _work(self) -> None:
        while self._plan():
            try:
                jobs = self._ask()
            except Error as error:  # noqa: PERF203 (nothing beside a claim)
                self._fail(error)
            except BaseException as error:  # noqa: BLE001 (raised again in a task)
                self.interrupt(_wrapped(error))
            else:
                self._give(jobs)
                del jobs  # it would keep them alive while the thread waits

    def _plan(self) -> bool:
        """Decides what to ask for next; waits while there is nothing. False: the thread ends."""
        with self._change:
            self._until, self._asked = math.inf, 0
            while not self._closed:
                if self._waiters:
                    self._asked = min(self._demand, _lib.BATCH_MAX)
                    self._asked_for = self._newest
                    self._until = self._end()
                    self._stale = False
                    return True
                if not self._change.wait(IDLE) and not self._waiters:
                    break
            self._thread = None
            return False

    def _end(self) -> float:
        """When the first of the waiters has waited its time; not soon after another one had."""
        while self._ends and self._ends[0][1] not in self._waiters:
            heapq.heappop(self._ends)
        if not self._ends:
            return math.inf
        first = self._ends[0][0]
        return first if first <= time.monotonic() else max(first, self._told + TOGETHER)

    def _wanted(self) -> bool:
        return not self._stale

    def _ask(self) -> list[Job] | None:
        """Makes one claim; no jobs when none came in time, None when the tasks want another one."""
        handle = self._queue._live()  # noqa: SLF001 (one package)
        left = options.FOR_EVER_MS
        if self._until != math.inf:
            left = max(0, math.ceil((self._until - time.monotonic()) * 1000))
        claimed = _lib.new_batch()
        try:
            came = _lib.claim_while(claimed, handle, self._asked, left, SLICE_MS, self._wanted)
            if came:
                many = self._asked > 1
                return jobs_of(self._queue, claimed) if many else [job_of(self._queue, claimed)]
        except BaseException:
            _lib.abandon(claimed, handle)
            raise
        _lib.abandon(claimed, handle)
        return None if came is None else []

    def _give(self, jobs: list[Job] | None) -> None:
        """Hands out what came; when nothing did, tells those that have waited their time."""
        if jobs is None:
            return
        with self._change:
            answers = self._share(jobs)
            if not jobs:
                answers = [(waiter.ticket, []) for waiter in self._expired()]
        post(answers)

    def _share(self, jobs: list[Job]) -> list[Answer]:
        """Gives the longest waiters a job each, and the first what is left. The lock is held."""
        lucky = [waiter for waiter, _ in zip(self._waiters.values(), jobs)]
        shares = [[job] for job in jobs[: len(lucky)]]
        left = jobs[len(lucky) :]
        for waiter, share in zip(lucky, shares):
            self._remove(waiter)
            more = waiter.most - 1
            share.extend(left[:more])
            left = left[more:]
        for job in left:  # somebody was cancelled meanwhile
            self._hand_back(job)
        return [(waiter.ticket, share) for waiter, share in zip(lucky, shares)]

    def _take_back(self, jobs: list[Job]) -> None:
        """Jobs did not reach the task: another one that waits may have them."""
        with self._change:
            answers = self._share(jobs)
        post(answers)

    def _expired(self) -> list[_Waiter]:
        """Takes off those for whom was asked and that have waited their time. The lock is held."""
        now = time.monotonic()
        gone = []
        later = []
        while self._ends and (self._ends[0][0] <= now or self._ends[0][1] not in self._waiters):
            deadline, number = heapq.heappop(self._ends)
            waiter = self._waiters.get(number)
            if waiter is None:
                continue
            if number > self._asked_for:
                later.append((deadline, number))
            else:
                self._remove(waiter)
                gone.append(waiter)
                self._told = now
        for end in later:
            heapq.heappush(self._ends, end)
        return gone

    def _fail(self, error: Error) -> None:
        """Tells those that the error concerns: an outage is news at the end of the wait only."""
        with self._change:
            gone = self._expired() if isinstance(error, ConnectionFailed) else []
        if gone:
            post([(waiter.ticket, error.again()) for waiter in gone])
        else:
            self.interrupt(error)


def _wrapped(error: BaseException) -> Error:
    """What nobody expects, as an exception that each task can have one of."""
    made = Error(f"claim: {error!r}")
    made.__cause__ = error
    return made
