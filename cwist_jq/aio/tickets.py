"""The way back from a thread to the task that waits.

A result may be more than news: a claimed job that reaches nobody would be kept from all workers
until its lease ends. So each ticket knows what to do with a result that its task did not get.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Ticket", "post"]

T = TypeVar("T")


class Ticket(Generic[T]):
    """What a task waits for and another thread answers. Made and awaited on the task's loop."""

    __slots__ = ("_future", "_loop", "_refuse")

    def __init__(self, refuse: Callable[[T], None] | None = None) -> None:
        """Makes one that is not answered yet.

        Args:
            refuse: Takes a result that does not reach the task, which was cancelled or whose loop
                is closed. It is called by any thread and must not wait.
        """
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()
        self._refuse = refuse

    @property
    def dropped(self) -> bool:
        """True when the task does not wait any more."""
        return self._future.cancelled()

    async def wait(self) -> T:
        """Waits for the answer: returns it, or raises it when it is an exception."""
        try:
            return await self._future
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        """The task goes, perhaps just after the answer came."""
        future = self._future
        if not future.done():
            # The coroutine was closed. Its loop may be closed too.
            with contextlib.suppress(RuntimeError):
                future.cancel()
        elif not future.cancelled() and future.exception() is None:
            self.refused(future.result())

    def refused(self, answer: T | BaseException) -> None:
        """The answer does not reach the task. What has nobody else to take it is forgotten."""
        if self._refuse is not None and not isinstance(answer, BaseException):
            self._refuse(answer)

    def take(self, answer: T | BaseException) -> None:
        """Takes the answer, on the task's loop."""
        if self._future.done():
            self.refused(answer)
        elif isinstance(answer, BaseException):
            self._future.set_exception(answer)
        else:
            self._future.set_result(answer)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the task."""
        return self._loop


Answer = tuple["Ticket[Any]", Any]


def post(answers: Iterable[Answer]) -> None:
    """Sends answers from any thread to their loops; each loop is woken once.

    Args:
        answers: Tickets, each with a result or an exception.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].loop, []).append(answer)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver, group)
        except RuntimeError:  # noqa: PERF203 (the loop is closed)
            for ticket, answer in group:
                ticket.refused(answer)


def _deliver(group: list[Answer]) -> None:
    for ticket, answer in group:
        ticket.take(answer)
