"""What becomes of a job that is not acked."""

from __future__ import annotations

from cwist_jq.job import REASON_MAX, reason_of
from cwist_jq.worker.errors import Reject, RemoteError, Retry, Snooze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.job import Job

__all__ = ["DEAD", "NACK", "RELEASE", "Outcome", "outcome_of"]

NACK = "nack"
DEAD = "dead"
RELEASE = "release"


class Outcome:
    """How a job that is not acked ends.

    Attributes:
        end: NACK, DEAD or RELEASE.
        delay: Seconds until the job is ready again; None takes what the queue's policy says.
        reason: Kept with the job, already cut to what a reason may have.
    """

    __slots__ = ("delay", "end", "reason")

    def __init__(self, end: str, delay: float | None = None, reason: str | None = None) -> None:
        """Keeps all three."""
        self.end = end
        self.delay = delay
        self.reason = reason

    def settle(self, job: Job) -> None:
        """Ends the delivery; raises what Job.nack() and Job.release() raise."""
        if self.end == RELEASE:
            job.release(delay=self.delay or 0)
        else:
            job.nack(self.reason, delay=self.delay, dead=self.end == DEAD)


def _seconds(delay: object) -> float | None:
    """A duration that was checked before, as seconds."""
    if delay is None or isinstance(delay, (int, float)):
        return delay
    return float(delay.total_seconds())  # type: ignore[attr-defined]  # a timedelta


def _reason(error: Retry | Reject) -> str:
    """The reason that was given, else what led to the decision."""
    if error.reason is not None:
        text = str(error.reason).replace("\0", "\\x00").encode("utf-8", "backslashreplace")
        return text[:REASON_MAX].decode("utf-8", "ignore")
    return reason_of(error.__cause__ or error.__context__ or error).decode()


def outcome_of(error: BaseException) -> Outcome:
    """What an exception of a handler says."""
    if isinstance(error, RemoteError):
        return error.outcome
    if isinstance(error, Snooze):
        return Outcome(RELEASE, _seconds(error.delay))
    if isinstance(error, Retry):
        return Outcome(NACK, _seconds(error.delay), _reason(error))
    if isinstance(error, Reject):
        return Outcome(DEAD, None, _reason(error))
    return Outcome(NACK, None, reason_of(error).decode())
