"""Dead letters: jobs that had their last delivery, were rejected, or are malformed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cwist_jq import options
from cwist_jq.dead import PAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cwist_jq.aio.queue import Queue
    from cwist_jq.dead import DeadLetter, DeadPage
    from cwist_jq.options import Duration

__all__ = ["DeadLetters"]


class DeadLetters:
    """The dead letters of a queue. Made by Queue.dead.

    Asynchronous iteration yields all of them, newest first, and reads a page at a time. The calls
    raise what those of cwist_jq.DeadLetters raise.

    Example:
        async for letter in queue.dead:
            print(letter.id, letter.type, letter.cause, letter.reason)
    """

    __slots__ = ("_letters", "_queue")

    def __init__(self, queue: Queue) -> None:
        """Those of one queue."""
        self._queue = queue
        self._letters = queue._queue.dead  # noqa: SLF001 (one package)

    async def __aiter__(self) -> AsyncIterator[DeadLetter]:
        """Yields all letters without their payloads, newest first."""
        mark = None
        while True:
            page = await self.page(options.BATCH_MAX, after=mark)
            for letter in page:
                yield letter
            mark = page.mark
            if mark is None:
                return

    async def page(
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
        """
        call = partial(self._letters.page, oldest_first=oldest_first, type=type, after=after)
        return await self._queue._run(call, most)  # noqa: SLF001 (one package)

    async def read(self, id: str) -> DeadLetter:
        """Reads one letter with its payload; changes nothing. NotFound when there is none."""
        return await self._queue._run(self._letters.read, id)  # noqa: SLF001 (one package)

    async def requeue(self, id: str) -> None:
        """Moves a letter back into the queue: it is ready, with the same id and no attempt spent.

        NotFound when there is none, or another one moved it.
        """
        await self._queue._run(self._letters.requeue, id)  # noqa: SLF001 (one package)

    async def requeue_all(self, type: str | None = None) -> int:
        """Moves the letters that are there now back into the queue, oldest first.

        Args:
            type: Only those of this type, "" for those without one. None: all.

        Returns:
            How many this call moved.
        """
        return await self._queue._run(self._letters.requeue_all, type)  # noqa: SLF001 (one package)

    async def purge(self, id: str) -> None:
        """Deletes a letter for good. NotFound when there is none."""
        await self._queue._run(self._letters.purge, id)  # noqa: SLF001 (one package)

    async def purge_all(self, type: str | None = None, older_than: Duration = 0) -> int:
        """Deletes for good the letters that are there now.

        Args:
            type: Only those of this type, "" for those without one. None: all.
            older_than: Only those that died at least so long ago, by the server's clock.

        Returns:
            How many were deleted.
        """
        return await self._queue._run(self._letters.purge_all, type, older_than)  # noqa: SLF001

    def __repr__(self) -> str:
        """Whose letters they are."""
        return f"<cwist_jq.aio.DeadLetters of {self._queue.name!r}>"
