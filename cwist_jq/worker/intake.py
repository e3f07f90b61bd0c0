"""Decides which queue is asked for jobs, when, and for how many."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwist_jq.worker.lane import Lane
    from cwist_jq.worker.order import Order

__all__ = ["Intake"]

CLAIM_MOST = 1000

# What is known of a queue.
HUNGRY = "may have jobs"
ASKED = "is asked now"
EMPTY = "had none when asked"
AWAITED = "a claim waits there"


class Intake:
    """Room for jobs, and the queues that compete for it. Any thread may use it.

    A single queue is asked by claims that wait. Of several, those that may have jobs are asked in
    their order by claims that do not; where there were none, a claim for one job waits.
    """

    def __init__(self, count: int, order: Order, lanes: Sequence[Lane]) -> None:
        """For so many queues."""
        self._change = threading.Condition(threading.Lock())
        self._order = order
        self._lanes = tuple(lanes)
        self._states = [HUNGRY] * count
        self._asked = False
        self._closed = False
        self.emptied: Callable[[], None] = lambda: None  # called when nothing is held after close()

    def room(self) -> int:
        """How many jobs may be claimed: by their types they may all go to any lane."""
        return min([lane.room() for lane in self._lanes])

    def turn(self, index: int) -> tuple[int, bool] | None:
        """Waits until a queue may be asked.

        Returns:
            For how many jobs, and whether the claim may wait for them; None when it is closed.
        """
        with self._change:
            while not self._closed:
                if self._states[index] is EMPTY and self.room() > 0:
                    self._states[index] = AWAITED
                    self._change.notify_all()
                    return 1, True
                count = self._granted(index)
                if count > 0:
                    self._states[index] = ASKED
                    self._asked = True
                    return count, len(self._states) == 1
                self._change.wait()
        return None

    def _granted(self, index: int) -> int:
        """For how many jobs a queue may be asked now."""
        if self._states[index] is not HUNGRY or self._asked:
            return 0
        if any(lane.room() < lane.fill() for lane in self._lanes):
            return 0
        hungry = [one for one, state in enumerate(self._states) if state is HUNGRY]
        if self._order.first(hungry) != index:
            return 0
        return min(CLAIM_MOST, self._order.share(index, hungry, self.room()))

    def came(self, index: int, counts: Sequence[tuple[Lane, int]]) -> None:
        """The claim of a queue has ended, with so many jobs for each lane."""
        with self._change:
            total = 0
            for lane, count in counts:
                lane.held += count
                total += count
            asked = self._states[index] is ASKED
            if asked:
                self._asked = False
            several = len(self._states) > 1
            self._states[index] = EMPTY if several and asked and not total else HUNGRY
            if several:
                if not asked:
                    hungry = [one for one, state in enumerate(self._states) if state is HUNGRY]
                    self._order.returned(index, hungry)
                self._order.came(index, total)
                self._change.notify_all()

    def awaited(self) -> list[int]:
        """The queues whose claims wait although there is no room now: to be interrupted."""
        with self._change:
            if self.room() > 0:
                return []
            return [one for one, state in enumerate(self._states) if state is AWAITED]

    def settled(self, lane: Lane, count: int) -> None:
        """So many jobs of a lane are gone."""
        with self._change:
            lane.held -= count
            self._change.notify_all()
        if self._closed and not self.held():
            self.emptied()

    def changed(self) -> None:
        """The room may have changed."""
        with self._change:
            self._change.notify_all()

    def held(self) -> int:
        """How many jobs there are."""
        return sum([lane.held for lane in self._lanes])

    def close(self) -> None:
        """Gives no more turns."""
        with self._change:
            self._closed = True
            self._change.notify_all()
