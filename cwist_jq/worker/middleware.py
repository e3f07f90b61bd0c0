"""What runs around every handler."""

from __future__ import annotations

import logging
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from cwist_jq.job import Job

__all__ = ["Hooks", "Middleware"]

_log = logging.getLogger("cwist_jq.worker")


class Middleware:
    """Runs before and after each handler. Override what you need.

    Its methods are called where the handler runs: in its thread and its context, or on the loop;
    for handlers in child processes they are called in this process. For an async handler they may
    be coroutines. Those of the first middleware are outermost. Each before() that has returned is
    followed by one after() or failed(), also when its child process ended before the handler began
    and the job waits for another one.
    """

    def before(self, job: Job) -> Awaitable[None] | None:
        """Runs before the handler. What it raises counts as if the handler had raised it."""

    def after(self, job: Job) -> Awaitable[None] | None:
        """Runs when the handler has returned, before the ack. What it raises is only logged."""

    def failed(self, job: Job, error: BaseException) -> Awaitable[None] | None:
        """Runs when the handler, or a before(), has raised. What it raises is only logged."""


class Hooks:
    """All the middleware of a worker."""

    def __init__(self, chain: Sequence[Middleware]) -> None:
        """Keeps the chain; the first is outermost."""
        self._inwards = tuple(chain)
        self._outwards = tuple(reversed(self._inwards))

    def __bool__(self) -> bool:
        return bool(self._inwards)

    def before(self, job: Job) -> None:
        """All that runs before the handler."""
        for one in self._inwards:
            _refuse_awaitable(one.before(job))

    def after(self, job: Job) -> None:
        """All that runs when the handler has returned."""
        for one in self._outwards:
            with _logged(one, "after", job, BaseException):
                _refuse_awaitable(one.after(job))

    def failed(self, job: Job, error: BaseException) -> None:
        """All that runs when the handler has raised."""
        for one in self._outwards:
            with _logged(one, "failed", job, BaseException):
                _refuse_awaitable(one.failed(job, error))

    async def before_async(self, job: Job) -> None:
        """As before(), also for coroutines."""
        for one in self._inwards:
            waited = one.before(job)
            if waited is not None:
                await waited

    async def after_async(self, job: Job) -> None:
        """As after(), also for coroutines."""
        for one in self._outwards:
            with _logged(one, "after", job):
                waited = one.after(job)
                if waited is not None:
                    await waited

    async def failed_async(self, job: Job, error: BaseException) -> None:
        """As failed(), also for coroutines."""
        for one in self._outwards:
            with _logged(one, "failed", job):
                waited = one.failed(job, error)
                if waited is not None:
                    await waited


@contextmanager
def _logged(
    one: Middleware, name: str, job: Job, kind: type[BaseException] = Exception
) -> Iterator[None]:
    """What is raised inside is logged: the end of the job is decided already."""
    try:
        yield
    except kind:
        _log.exception("%s() of %s failed, job %s", name, type(one).__qualname__, job.id)


def _refuse_awaitable(result: object) -> None:
    """A coroutine that nobody awaits would be lost without a word."""
    if result is not None and hasattr(result, "__await__"):
        close = getattr(result, "close", None)
        if close is not None:
            close()
        raise TypeError("a coroutine of a middleware needs an async handler")
