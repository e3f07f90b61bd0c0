"""How many jobs may wait in this process beside those that run: those that start soon."""

from __future__ import annotations

from time import monotonic

from cwist_jq.job import LateJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwist_jq.job import Job

__all__ = ["Pace"]

# A waiting job is to start within this time, and within a tenth of its visibility timeout.
SOON_S = 0.05
SOON_SHARE = 0.1
LEASE_S = 30.0  # until one is seen
CAREFUL_S = 1.0
MOST_JOBS = 2000
MOST_BYTES = 8 << 20
# How much the last job counts in the mean: some twenty jobs are remembered.
WEIGHT = 0.1


class Pace:
    """Learns from the jobs of a lane how long handlers take, and how large payloads are.

    Threads write it without a lock: a lost value does no harm to a mean.
    """

    __slots__ = ("_bytes", "_careful_until", "_lease", "mean")

    def __init__(self) -> None:
        """Knows nothing: no job may wait until one has been done."""
        self.mean: float | None = None
        self._lease = LEASE_S
        self._bytes = 0.0
        self._careful_until = 0.0

    def note(self, seconds: float) -> None:
        """A handler took so long."""
        mean = self.mean
        self.mean = seconds if mean is None else mean + (seconds - mean) * WEIGHT

    def stalled(self, seconds: float) -> None:
        """Nothing has started for so long: from now on none are to wait, until it is quicker."""
        self.mean = max(self.mean or 0.0, seconds)

    def careful(self) -> None:
        """There are jobs on their last delivery: for a while none are to wait.

        If this process dies, a job that only waited here would die with the one that was to blame.
        """
        self._careful_until = monotonic() + CAREFUL_S

    def came(self, jobs: Sequence[Job]) -> None:
        """Jobs were claimed just now: their leases and sizes are those to reckon with."""
        self._lease = jobs[0].lease_remaining
        large = sum([job.payload_size for job in jobs if type(job) is LateJob])
        self._bytes += (large / len(jobs) - self._bytes) / 2

    def ahead(self, slots: int) -> int:
        """How many jobs may wait when so many run at once."""
        if self.mean is None or monotonic() < self._careful_until:
            return 0
        most = MOST_JOBS
        if self._bytes > 0:
            most = min(most, int(MOST_BYTES / self._bytes))
        soon = min(SOON_S, self._lease * SOON_SHARE)
        return min(most, int(slots * soon / max(self.mean, 1e-6)))

    def patience(self) -> float:
        """After how many seconds a waiting job has waited too long: a quarter of its lease."""
        return self._lease / 4
