"""How a run of a handler ended, in the words that metrics and spans share."""

from __future__ import annotations

from cwist_jq.worker.outcome import DEAD, NACK, RELEASE, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.job import Job

__all__ = ["ACKED", "BURIED", "RELEASED", "end_of"]

ACKED = "acked"
NACKED = "nacked"
BURIED = "buried"
RELEASED = "released"

_WORDS = {NACK: NACKED, DEAD: BURIED, RELEASE: RELEASED}


def end_of(job: Job, error: BaseException) -> str:
    """What the worker does with a job whose handler raised: NACKED, BURIED or RELEASED."""
    word = _WORDS[outcome_of(error).end]
    if word == NACKED and job.attempts >= job._queue.max_retries:  # noqa: SLF001 (one package)
        return BURIED
    return word
