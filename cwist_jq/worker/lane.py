"""The places where jobs of one kind of handler run."""

from __future__ import annotations

from collections import deque
from time import monotonic

from cwist_jq.worker.pace import Pace
from cwist_jq.worker.ready import Ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cwist_jq.job import Job
    from cwist_jq.worker.outcome import Outcome

__all__ = ["Lane"]

# A waiting job that is still the first in line after this time goes back to the queue.
STALE_S = 1.0


class Lane:
    """Jobs that wait, run, or have ended and are not settled yet. Subclasses run them.

    Attributes:
        slots: How many run at once.
        held: How many jobs there are, of all three kinds. Belongs to the intake.
        ready: Those that wait.
        pace: How long handlers take.
        acks: Those that are done, for the settler.
        others: Those that ended otherwise, for the settler.
    """

    def __init__(self, slots: int, ranks: int) -> None:
        """Has no jobs; ranks: how many lines of them, the first served first."""
        self.slots = slots
        self.held = 0
        self.ready = Ready(ranks)
        self.pace = Pace()
        self.acks: deque[Job] = deque()
        self.others: deque[tuple[Job, Outcome]] = deque()
        self.ring: Callable[[], None] = lambda: None  # tells the settler of acks and others
        self.changed: Callable[[], None] = lambda: None  # tells the intake of slots that come or go
        self._oldest: Job | None = None
        self._oldest_since = 0.0

    def start(self) -> None:
        """Makes the lane ready to run jobs."""

    def offer(self, jobs: Sequence[Job], rank: int) -> None:
        """Takes claimed jobs."""
        raise NotImplementedError

    def close(self) -> None:
        """Starts nothing more. What runs goes on."""
        self.ready.close()

    def running(self) -> list[Job]:
        """The jobs that run now."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Ends what still runs, as far as it can be ended; its jobs are handed back by others."""

    def room(self) -> int:
        """How many more jobs may be claimed."""
        return self.slots + self.pace.ahead(self.slots) - self.held

    def fill(self) -> int:
        """How much room is worth a claim: quick jobs are claimed many at a time."""
        return max(1, min(256, self.pace.ahead(self.slots) // 2))

    def stale(self) -> list[Job]:
        """Takes out what waits although it does not start soon; called a few times a second.

        All places are taken by jobs that are slower than those before them.
        """
        oldest, now = self.ready.first(), monotonic()
        if oldest is None or oldest is not self._oldest:
            self._oldest, self._oldest_since = oldest, now
            return []
        waited = now - self._oldest_since
        if waited < min(STALE_S, self.pace.patience()):
            return []
        self._oldest = None
        self.pace.stalled(waited)
        return self.ready.clear()
