"""Closing takes its time: what is on its way is sent first. A thread of its own waits for that."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Closing"]


class Closing:
    """Whether a thing is being closed, or is closed."""

    __slots__ = ("_done", "_lock")

    def __init__(self) -> None:
        """Makes that of an open thing."""
        self._done: Future[None] | None = None
        self._lock = threading.Lock()

    @property
    def begun(self) -> bool:
        """True when it is being closed, or is closed."""
        return self._done is not None

    def begin(self) -> bool:
        """Begins; False when somebody else did before."""
        with self._lock:
            if self._done is not None:
                return False
            self._done = Future()
            self._done.set_running_or_notify_cancel()  # a cancelled task does not cancel it
            return True

    def start(self, work: Callable[[], None]) -> None:
        """Has a thread do the work and finish."""
        threading.Thread(target=self.run, args=(work,), name="cwist_jq close", daemon=True).start()

    def run(self, work: Callable[[], None]) -> None:
        """Does the work and finishes; what it raises is raised where the end is waited for."""
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (raised in the tasks that wait)
            self._end().set_exception(error)
        else:
            self._end().set_result(None)

    def _end(self) -> Future[None]:
        assert self._done is not None  # noqa: S101 (begin() comes first)
        return self._done

    def join(self) -> None:
        """Waits for the end, in a thread that may."""
        wait([self._end()])

    async def wait(self) -> None:
        """Waits for the end. When the task is cancelled, closing goes on."""
        if self._done is not None:
            await asyncio.wrap_future(self._done)
