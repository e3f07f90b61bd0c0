"""What a handler raises to say what becomes of its job, and what stands for it elsewhere."""

from __future__ import annotations

from cwist_jq import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.options import Duration
    from cwist_jq.worker.outcome import Outcome

__all__ = ["JobError", "Reject", "RemoteError", "Retry", "Snooze"]

YEAR_MS = 365 * options.DAY_MS


class JobError(Exception):
    """The root of the exceptions by which a handler decides about its job."""


class Retry(JobError):
    """The job failed and is to be tried again. On its last delivery it becomes a dead letter.

    Example:
        raise Retry(30, "the mail server is busy")

    Attributes:
        delay: How long it waits: 0 to 31536000 seconds (365 days), or a timedelta. None takes what
            the queue's retry policy says.
        reason: What went wrong, kept with the job. None takes what led here.
    """

    def __init__(self, delay: Duration | None = None, reason: str | None = None) -> None:
        """Checks the delay."""
        if delay is not None:
            options.milliseconds("delay", delay, 0, YEAR_MS)
        super().__init__(delay, reason)
        self.delay = delay
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or "to be tried again"


class Reject(JobError):
    """The job can never be done: it becomes a dead letter now.

    Example:
        raise Reject("there is no such customer")

    Attributes:
        reason: Why, kept with the dead letter.
    """

    def __init__(self, reason: str | None = None) -> None:
        """Keeps the reason."""
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or "rejected"


class Snooze(JobError):
    """The job cannot be done yet. It comes back after the delay, and no attempt is spent.

    Example:
        raise Snooze(600)

    Attributes:
        delay: How long it waits: 0 to 31536000 seconds (365 days), or a timedelta.
    """

    def __init__(self, delay: Duration) -> None:
        """Checks the delay."""
        options.milliseconds("delay", delay, 0, YEAR_MS)
        super().__init__(delay)
        self.delay = delay

    def __str__(self) -> str:
        return f"snoozed for {self.delay}"


class RemoteError(Exception):
    """A handler failed in a child process, or the process ended; the text is its traceback.

    Attributes:
        outcome: What becomes of the job.
    """

    def __init__(self, text: str, outcome: Outcome) -> None:
        """Keeps both."""
        super().__init__(text, outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return str(self.args[0])
