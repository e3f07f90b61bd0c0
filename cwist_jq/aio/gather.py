"""Many tasks that each want one thing of the server, gathered into batches.

While one batch is on its way, the next one gathers. So a task that is alone waits for no other, and
10,000 tasks need ten round trips.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cwist_jq.aio.tickets import Ticket, post
from cwist_jq.errors import ConnectionFailed, Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwist_jq.aio.threads import Threads
    from cwist_jq.aio.tickets import Answer

__all__ = ["AGAIN", "Gatherer"]

T = TypeVar("T")

#: The result of an item that was not tried: it goes into the next batch.
AGAIN = object()

BATCH_MAX = 1000
BATCH_BYTES = 8 << 20


class _Entry(Generic[T]):
    """An item, and the ticket of the task that waits for its result."""

    __slots__ = ("item", "surely", "ticket")

    def __init__(self, item: T, ticket: Ticket[Any] | None, *, surely: bool) -> None:
        self.item = item
        self.ticket = ticket
        self.surely = surely

    @property
    def wanted(self) -> bool:
        return self.surely or self.ticket is None or not self.ticket.dropped


class Gatherer(Generic[T]):
    """Sends what tasks give it in batches, one at a time, in order."""

    def __init__(
        self,
        threads: Threads,
        send: Callable[[list[T]], list[Any]],
        size: Callable[[T], int] | None = None,
    ) -> None:
        """Makes one that has nothing to send.

        Args:
            threads: Where it sends; it takes its turn for each batch.
            send: Sends up to BATCH_MAX items. It returns a result, an exception or AGAIN for each,
                or raises what holds for all.
            size: The bytes of an item. None: they are all small.
        """
        self._threads = threads
        self._send = send
        self._size = size
        self._most = BATCH_MAX
        self._pending: deque[_Entry[T]] = deque()
        self._change = threading.Condition(threading.Lock())
        self._active = False

    def submit(self, item: T, *, surely: bool = False) -> Ticket[Any]:
        """Gives an item; its ticket tells what became of it.

        Args:
            item: What to send.
            surely: Send it even when the task is cancelled before.
        """
        ticket: Ticket[Any] = Ticket()
        self._add(_Entry(item, ticket, surely=surely))
        return ticket

    def send_surely(self, item: T) -> None:
        """Gives an item that no task waits for. A failure is logged."""
        self._add(_Entry(item, None, surely=True))

    def _add(self, entry: _Entry[T]) -> None:
        with self._change:
            self._pending.append(entry)
            start, self._active = not self._active, True
        if start:
            try:
                self._threads.submit(self._turn)
            except BaseException:  # no thread can be started
                with self._change:
                    self._pending.pop()
                    self._active = False
                raise

    def drain(self) -> None:
        """Waits until all is sent."""
        with self._change:
            while self._active:
                self._change.wait()

    def _turn(self) -> None:
        """Sends one batch; other users of the threads have their turn before the next one."""
        with self._change:
            batch = self._take()
            waiting = len(self._pending)
        results = self._results([entry.item for entry in batch]) if batch else []
        answers: list[Answer] = []
        again = []
        for entry, result in zip(batch, results):
            if result is AGAIN:
                again.append(entry)
            elif entry.ticket is not None:
                answers.append((entry.ticket, result))
            elif isinstance(result, BaseException):
                logging.getLogger("cwist_jq").warning("%s", result)
        with self._change:
            failed = next((one for one in results if isinstance(one, ConnectionFailed)), None)
            if failed is not None:
                # These have waited for that server just as long.
                answers += self._give_up(min(waiting, len(self._pending)), failed)
            self._pending.extendleft(reversed(again))
            self._most = max(1, len(batch) // 2) if again else min(BATCH_MAX, self._most * 2)
            self._active = bool(self._pending)
            if self._active:
                self._threads.submit(self._turn)
            else:
                self._change.notify_all()
        post(answers)

    def _take(self) -> list[_Entry[T]]:
        """Takes the next batch, without what nobody waits for any more."""
        batch: list[_Entry[T]] = []
        room = BATCH_BYTES
        while self._pending and len(batch) < self._most:
            entry = self._pending[0]
            if entry.wanted:
                room -= 0 if self._size is None else self._size(entry.item)
                if room < 0 and batch:
                    break
                batch.append(entry)
            self._pending.popleft()
        return batch

    def _results(self, items: list[T]) -> list[Any]:
        try:
            return self._send(items)
        except Error as error:
            return [error.again() for _ in items]
        except BaseException as error:  # noqa: BLE001 (raised again in a task)
            return [error, *(RuntimeError(repr(error)) for _ in items[1:])]

    def _give_up(self, count: int, error: Error) -> list[Answer]:
        answers: list[Answer] = []
        for _ in range(count):
            ticket = self._pending.popleft().ticket
            if ticket is not None:
                answers.append((ticket, error.again()))
        return answers
