"""enqueue_many(): what an iterable gives is stored in pieces, one behind the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cwist_jq import batch
from cwist_jq.errors import Error

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterable

__all__ = ["enqueue_many"]

PIECE = 1000


class _Pieces:
    """Takes items from an iterable of either kind, on the loop: it is the caller's code."""

    def __init__(self, payloads: Iterable[Any] | AsyncIterable[Any]) -> None:
        self._list = payloads if isinstance(payloads, (list, tuple)) else None
        self._taken = 0  # of the list
        self._later = payloads.__aiter__() if hasattr(payloads, "__aiter__") else None
        self._now = None if self._later is not None else iter(payloads)  # type: ignore[arg-type]
        self._kept: list[Any] = []  # what did not fit the piece before

    async def _take(self) -> list[Any]:
        """The next item, or nothing."""
        if self._kept:
            return [self._kept.pop()]
        try:
            if self._later is not None:
                return [await self._later.__anext__()]
            return [next(self._now)]  # type: ignore[arg-type]
        except (StopAsyncIteration, StopIteration):
            return []

    async def next(self) -> list[Any]:
        """The next piece: up to PIECE items of about batch.PIECE_BYTES; empty at the end.

        What is all there already is cut by its bytes later.
        """
        if self._list is not None:
            self._taken += PIECE
            return list(self._list[self._taken - PIECE : self._taken])
        piece: list[Any] = []
        room = batch.PIECE_BYTES
        while len(piece) < PIECE:
            item = await self._take()
            if not item:
                break
            room -= batch._size(item[0])  # noqa: SLF001 (one package)
            if piece and room < 0:
                self._kept = item
                break
            piece += item
        return piece


async def enqueue_many(
    store: Callable[[list[Any], str | None], Awaitable[list[str]]],
    payloads: Iterable[Any] | AsyncIterable[Any],
    type: str | None,
) -> list[str]:
    """Stores pieces; what is raised tells of all items, as that of cwist_jq.Queue does."""
    ids: list[str] = []
    pieces = _Pieces(payloads)
    while piece := await pieces.next():
        try:
            ids += await store(piece, type)
        except Error as error:  # noqa: PERF203 (a piece is many items)
            batch._name_among_all(error, "items", len(ids))  # noqa: SLF001 (one package)
            error.results = [*ids, *(error.results or [])]
            if isinstance(payloads, (list, tuple)):
                missing = len(payloads) - len(error.results)
                error.results += [batch._unsent() for _ in range(missing)]  # noqa: SLF001
            raise
    return ids
