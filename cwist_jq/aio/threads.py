"""The few threads of a connection, for calls that block."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from cwist_jq.aio.tickets import Ticket, post

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IDLE", "MOST", "Threads"]

T = TypeVar("T")

#: Threads of one connection. A call waits for its server; more would wait for the same one.
MOST = 4
#: How long a thread without work stays, in seconds.
IDLE = 5.0


class Threads:
    """Makes calls in turn, a few at once. Threads are started when they are needed.

    They are daemons: a program may end while one of them waits for a server.
    """

    def __init__(self, name: str, most: int = MOST) -> None:
        """Makes a pool without threads."""
        self._name = name
        self._most = most
        self._calls: deque[Callable[[], None]] = deque()
        self._ready = threading.Condition(threading.Lock())
        self._count = 0
        self._idle = 0
        self._closed = False

    def submit(self, call: Callable[[], None]) -> None:
        """Has a thread make the call, behind those that wait already. It must not raise."""
        with self._ready:
            self._calls.append(call)
            if self._idle < len(self._calls) and self._count < self._most:
                self._start()
            self._ready.notify()

    def _start(self) -> None:
        self._count += 1
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        except BaseException:
            self._count -= 1
            if self._count == 0:  # else another one makes the call
                self._calls.clear()
                raise

    def _work(self) -> None:
        while True:
            with self._ready:
                while not self._calls:
                    self._idle += 1
                    told = not self._closed and self._ready.wait(IDLE)
                    self._idle -= 1
                    if not told and not self._calls:
                        self._count -= 1
                        return
                call = self._calls.popleft()
            try:
                call()
            except Exception:
                # Nobody waits for it: what is undone for a cancelled task.
                logging.getLogger("cwist_jq").exception("a call in the background failed")
            del call  # it may hold a job or a payload

    async def run(
        self,
        call: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], None] | None = None,
        surely: bool = False,
    ) -> T:
        """Makes a call in a thread and waits for it.

        Args:
            call: What to call. Its exceptions are raised here.
            arguments: Its arguments.
            undo: Takes the result when the task was cancelled meanwhile; called by a thread.
            surely: Make the call even when the task is cancelled before its turn.
        """
        refuse = None if undo is None else lambda made: self.submit(lambda: undo(made))
        ticket: Ticket[T] = Ticket(refuse)

        def work() -> None:
            if ticket.dropped and not surely:
                return
            answer: T | BaseException
            try:
                answer = call(*arguments)
            except BaseException as error:  # noqa: BLE001 (raised again in the task)
                answer = error
            post([(ticket, answer)])
            del answer  # an exception leads to this frame: no cycle

        self.submit(work)
        return await ticket.wait()

    def close(self) -> None:
        """Lets the threads end when the calls that wait are made. Closing again does nothing."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
