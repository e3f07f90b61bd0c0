"""Runs the handler of a job, with the middleware around it."""

from __future__ import annotations

import logging
from time import monotonic

from cwist_jq.worker import log
from cwist_jq.worker.outcome import NACK, Outcome, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.job import Job
    from cwist_jq.worker.middleware import Hooks
    from cwist_jq.worker.registry import Registry

__all__ = ["Execution"]


class Execution:
    """Handlers and middleware; the same in threads and on the loop."""

    def __init__(self, registry: Registry, hooks: Hooks) -> None:
        """Nothing more is registered from now on."""
        self._find = registry.find
        self._hooks = hooks
        self._tells = log.LOGGER.isEnabledFor(logging.DEBUG)

    def run(self, job: Job) -> Outcome | None:
        """Runs a handler that is no coroutine; None when the job is done. Never raises."""
        handler = self._find(job.type)
        if handler is None:
            return self.unknown(job)
        hooks = self._hooks
        start = monotonic() if self._tells else 0.0
        try:
            if hooks:
                hooks.before(job)
            handler.call(job)
        except BaseException as error:  # noqa: BLE001 (no handler ends the worker, not by sys.exit() either)
            return self.failed(job, error)
        if hooks:
            hooks.after(job)
        if self._tells:
            log.done(job, monotonic() - start)
        return None

    async def run_async(self, job: Job) -> Outcome | None:
        """Runs a handler that is one; None when the job is done. Only cancelling it raises."""
        handler = self._find(job.type)
        if handler is None:
            return self.unknown(job)
        hooks = self._hooks
        start = monotonic() if self._tells else 0.0
        try:
            if hooks:
                await hooks.before_async(job)
            await handler.call(job)
        except BaseException as error:  # noqa: BLE001 (as in run())
            outcome = outcome_of(error)
            log.ended(job, outcome, error)
            if hooks:
                await hooks.failed_async(job, error)
            return outcome
        if hooks:
            await hooks.after_async(job)
        if self._tells:
            log.done(job, monotonic() - start)
        return None

    def failed(self, job: Job, error: BaseException) -> Outcome:
        """What the exception says; logs it and tells the middleware."""
        outcome = outcome_of(error)
        log.ended(job, outcome, error)
        if self._hooks:
            self._hooks.failed(job, error)
        return outcome

    @staticmethod
    def unknown(job: Job) -> Outcome:
        """Another worker may know the type: the job is tried again, as often as any that fails."""
        outcome = Outcome(NACK, None, f"no handler for jobs of type {job.type}")
        log.ended(job, outcome, None)
        return outcome
