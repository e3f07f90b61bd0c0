"""What the worker logs, with the same facts in each line: queue, job id, type, attempt.

They are in the text, and as `queue`, `job_id`, `job_type` and `attempt` on the record.
"""

from __future__ import annotations

import logging

from cwist_jq.worker.outcome import DEAD, RELEASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.job import Job
    from cwist_jq.worker.outcome import Outcome

__all__ = ["LOGGER", "done", "ended", "handed_back", "unsettled"]

LOGGER = logging.getLogger("cwist_jq.worker")


def _tell(
    level: int, job: Job, words: str, *more: object, error: BaseException | None = None
) -> None:
    text = "job %s of queue %s, type %s, attempt %d, " + words
    LOGGER.log(
        level,
        text,
        job.id,
        job.queue,
        job.type,
        job.attempts,
        *more,
        exc_info=error,
        extra={
            "queue": job.queue,
            "job_id": job.id,
            "job_type": job.type,
            "attempt": job.attempts,
        },
    )


def done(job: Job, seconds: float) -> None:
    """A handler returned."""
    _tell(logging.DEBUG, job, "is done after %.3f s", seconds)


def ended(job: Job, outcome: Outcome, error: BaseException | None) -> None:
    """A handler raised, or its process ended."""
    if outcome.end == RELEASE:
        _tell(logging.INFO, job, "is snoozed for %s s", outcome.delay)
    elif outcome.end == DEAD:
        _tell(logging.ERROR, job, "is rejected and a dead letter now: %s", outcome.reason)
    elif job.attempts >= job._queue.max_retries:  # noqa: SLF001 (one package)
        words = "failed for the last time and is a dead letter now: %s"
        _tell(logging.ERROR, job, words, outcome.reason, error=error)
    else:
        _tell(logging.WARNING, job, "failed: %s", outcome.reason, error=error)


def unsettled(job: Job, what: str, error: BaseException) -> None:
    """The end of a job could not be told to the server."""
    _tell(logging.WARNING, job, "could not be %s: %s", what, error)


def handed_back(job: Job) -> None:
    """A handler was still running when the shutdown timeout was over."""
    _tell(logging.WARNING, job, "is still running and handed back")
