"""Jobs that were claimed and wait for a free place, and who waits for them."""

from __future__ import annotations

import _thread
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwist_jq.job import Job

__all__ = ["Ready", "Seat"]


class Seat:
    """One who takes jobs, one at a time.

    Attributes:
        job: What it works on now.
    """

    __slots__ = ("bell", "job")

    def __init__(self) -> None:
        """Waits for nothing yet."""
        self.bell = _thread.allocate_lock()
        self.bell.acquire()
        self.job: Job | None = None


class Ready:
    """A line of waiting jobs for each rank; the first rank is served first. Any thread may use it.

    It stands on steps of deques and lists that no other thread can see half done.
    """

    def __init__(self, ranks: int) -> None:
        """Has no jobs."""
        self._lines: list[deque[Job]] = [deque() for _ in range(ranks)]
        self._sleepers: list[Seat] = []
        self.closed = False

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def first(self) -> Job | None:
        """The job that is next, left where it is."""
        for line in self._lines:
            try:
                return line[0]
            except IndexError:  # noqa: PERF203 (another thread was quicker, or there is none)
                pass
        return None

    def put(self, jobs: Iterable[Job], rank: int = 0) -> None:
        """Adds jobs, without waking anybody."""
        self._lines[rank].extend(jobs)

    def put_back(self, job: Job) -> None:
        """Makes a job the next one."""
        self._lines[0].appendleft(job)

    def pop(self) -> Job | None:
        """Takes the next job, if there is one."""
        for line in self._lines:
            try:
                return line.popleft()
            except IndexError:  # noqa: PERF203 (another thread was quicker, or there is none)
                pass
        return None

    def clear(self) -> list[Job]:
        """Takes all that wait."""
        taken = []
        while (job := self.pop()) is not None:
            taken.append(job)
        return taken

    def wake(self, count: int) -> int:
        """Wakes up to so many sleepers, the last to fall asleep first; how many there were."""
        for number in range(count):
            try:
                seat = self._sleepers.pop()
            except IndexError:
                return number
            seat.bell.release()
        return count

    def close(self) -> None:
        """Sends all who take home."""
        self.closed = True
        self.wake(len(self._sleepers) + 1)

    def take(self, seat: Seat, patience: float = -1) -> Job | None:
        """Waits for a job; it is the seat's until it says that it has none.

        Returns:
            None when there is none: it is closed, or the patience (in seconds) is over.
        """
        while not self.closed:
            seat.job = job = self.pop()
            if job is not None:
                return job
            self._sleepers.append(seat)
            # What came before this seat was in the list woke nobody.
            if (len(self) or self.closed) and self._leave(seat):
                continue
            if not seat.bell.acquire(timeout=patience) and self._leave(seat):
                return None
        return None

    def _leave(self, seat: Seat) -> bool:
        """Takes a seat off the sleepers; False, and its bell has rung, when it was woken."""
        try:
            self._sleepers.remove(seat)
        except ValueError:
            return False
        return True
