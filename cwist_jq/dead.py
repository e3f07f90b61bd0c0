"""Dead letters: jobs that had their last delivery, were rejected, or are malformed."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from types import MappingProxyType

from cwist_jq import _lib_upkeep, options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cwist_jq._lib_upkeep import Told
    from cwist_jq.options import Duration
    from cwist_jq.queue import Queue

__all__ = ["DeadLetter", "DeadLetters", "DeadPage"]

PAGE = 100
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter as it stood on the server when it was read.

    Attributes:
        id: The id of the job.
        type: The type tag, or None.
        payload: The bytes that were enqueued; None in a list, which leaves payloads on the server.
        size: Of the payload, in bytes.
        cause: "nacked", "rejected", "lease-expired" or "malformed".
        reason: What the worker said, or None.
        attempts: How often it was delivered.
        first_time: When it was enqueued, by the server's clock; None: not known.
        death_time: When it died; None: not known.
        consumer: The label of the worker that had it last; None: not known.
        headers: The headers of the job.
    """

    id: str
    type: str | None
    payload: bytes | None = field(repr=False)
    size: int
    cause: str
    reason: str | None
    attempts: int
    first_time: dt.datetime | None
    death_time: dt.datetime | None
    consumer: str | None
    headers: Mapping[str, str] = field(repr=False, hash=False)


class DeadPage(list[DeadLetter]):
    """Dead letters that were read together, in order.

    Attributes:
        mark: Where the next page begins, for DeadLetters.page(after=...); None: this is the last.
    """

    __slots__ = ("mark",)

    mark: str | None

    def __init__(self, letters: list[DeadLetter], mark: str | None) -> None:
        """Made by DeadLetters.page()."""
        super().__init__(letters)
        self.mark = mark


class DeadLetters:
    """The dead letters of a queue. Made by Queue.dead. Any thread may use it.

    Iteration yields all of them, newest first, and reads a page at a time. Letters that come or go
    meanwhile shift no others: none is left out, none comes twice.

    Example:
        for letter in queue.dead:
            print(letter.id, letter.type, letter.cause, letter.reason)
    """

    __slots__ = ("_queue",)

    def __init__(self, queue: Queue) -> None:
        """Those of one queue."""
        self._queue = queue

    def __iter__(self) -> Iterator[DeadLetter]:
        """Yields all letters without their payloads, newest first."""
        page = self.page(options.BATCH_MAX)
        yield from page
        while page.mark is not None:
            page = self.page(options.BATCH_MAX, after=page.mark)
            yield from page

    def page(
        self,
        most: int = PAGE,
        *,
        oldest_first: bool = False,
        type: str | None = None,
        after: str | None = None,
    ) -> DeadPage:
        """Reads a page of letters without their payloads; changes nothing.

        Args:
            most: How many at most: 1 to 1000.
            oldest_first: The order of death; else the newest come first.
            type: Only those of this type, "" for those without one. None: all.
            after: The mark of the page before, which was read with the same order and type. None:
                from the beginning.

        Returns:
            The letters; the next page begins at its `mark`.

        Raises:
            InvalidParam: An argument is out of its range, or the mark is none of this queue.
            ConnectionFailed, Denied, Closed: As for Queue.enqueue().
        """
        told, mark = _lib_upkeep.dead_list(
            self._queue._live(),  # noqa: SLF001 (one package)
            options.batch_size("most", most),
            None if type is None else options.text("type", type),
            None if after is None else options.text("after", after),
            oldest_first=options.flag("oldest_first", oldest_first),
        )
        return DeadPage([_letter(one) for one in told], mark)

    def read(self, id: str) -> DeadLetter:
        """Reads one letter with its payload; changes nothing.

        Raises:
            NotFound: There is no such letter.
            ConnectionFailed, Denied, Closed: As for Queue.enqueue().
        """
        handle = self._queue._live()  # noqa: SLF001 (one package)
        return _letter(_lib_upkeep.dead_read(handle, options.text("id", id)))

    def requeue(self, id: str) -> None:
        """Moves a letter back into the queue: it is ready, with the same id and no attempt spent.

        One step on the server: of two callers at once one moves it.

        Raises:
            NotFound: There is no such letter, or another one moved it.
            QueueFull: The queue holds max_length jobs; the letter stays.
            ConnectionFailed, OutcomeUnknown, Denied, Closed: As for Queue.enqueue().
        """
        handle = self._queue._live()  # noqa: SLF001 (one package)
        _lib_upkeep.dead_requeue(handle, options.text("id", id))

    def requeue_all(self, type: str | None = None) -> int:
        """Moves the letters that are there now back into the queue, oldest first.

        Args:
            type: Only those of this type, "" for those without one. None: all.

        Returns:
            How many this call moved; what another caller moves at the same time is not counted.

        Raises:
            QueueFull, ConnectionFailed, OutcomeUnknown, Denied, Closed: As for requeue(). `done` of
                the exception says how many were moved before.
        """
        handle = self._queue._live()  # noqa: SLF001 (one package)
        return _lib_upkeep.dead_requeue_all(
            handle, None if type is None else options.text("type", type)
        )

    def purge(self, id: str) -> None:
        """Deletes a letter for good.

        Raises:
            NotFound: There is no such letter.
            ConnectionFailed, Denied, Closed: As for Queue.enqueue().
        """
        handle = self._queue._live()  # noqa: SLF001 (one package)
        _lib_upkeep.dead_purge(handle, options.text("id", id))

    def purge_all(self, type: str | None = None, older_than: Duration = 0) -> int:
        """Deletes for good the letters that are there now.

        Args:
            type: Only those of this type, "" for those without one. None: all.
            older_than: Only those that died at least so long ago, by the server's clock: seconds
                from 0 up, or a timedelta.

        Returns:
            How many were deleted.

        Raises:
            ConnectionFailed, Denied, Closed: As for Queue.enqueue(). `done` of the exception says
                how many were deleted before.
        """
        handle = self._queue._live()  # noqa: SLF001 (one package)
        return _lib_upkeep.dead_purge_all(
            handle,
            None if type is None else options.text("type", type),
            options.milliseconds("older_than", older_than, 0, options.AGE_MAX_MS),
        )

    def __repr__(self) -> str:
        """Whose letters they are."""
        return f"<cwist_jq.DeadLetters of {self._queue.name!r}>"


def _letter(told: Told) -> DeadLetter:
    (job_id, kind, payload, size, cause, reason, attempts, first_ms, died_ms, consumer, headers) = (
        told
    )
    return DeadLetter(
        id=job_id,
        type=kind,
        payload=payload,
        size=size,
        cause=cause,
        reason=reason,
        attempts=attempts,
        first_time=_moment(first_ms),
        death_time=_moment(died_ms),
        consumer=consumer,
        headers=MappingProxyType(headers),
    )


def _moment(ms: int) -> dt.datetime | None:
    """Milliseconds since 1970 as a time; None for one that is not known."""
    try:
        return _EPOCH + dt.timedelta(milliseconds=ms) if ms else None
    except OverflowError:  # a foreign record may say anything
        return None
