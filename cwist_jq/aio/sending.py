"""What a batch of gathered enqueues or settlements does, with a result for each of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cwist_jq.aio.gather import AGAIN
from cwist_jq.errors import (
    Closed,
    Conflict,
    ConnectionFailed,
    Denied,
    Error,
    NotSent,
    OutOfMemory,
    Refused,
)
from cwist_jq.item import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwist_jq.item import Item
    from cwist_jq.job import Job
    from cwist_jq.queue import Queue

__all__ = ["settle", "size", "store"]

# What is wrong then is nothing about one item: those behind it need not be tried.
_SHARED = (Closed, Conflict, ConnectionFailed, Denied, OutOfMemory, Refused)
_PLACE = re.compile(r"\b(?:items|jobs)\[\d+\]: ")


def size(item: Item) -> int:
    """About how many bytes an item has; its payload is bytes."""
    return len(item.payload) + 64 * len(item.headers or ())  # type: ignore[arg-type]


def store(queue: Queue, items: list[Item]) -> list[Any]:
    """Stores jobs whose payloads are bytes: an id, an exception or AGAIN for each."""
    if len(items) == 1:
        return [_store_one(queue, items[0])]
    try:
        kinds = {item.type if _plain(item) else item for item in items}
        if len(kinds) > 1 or not _plain(items[0]):
            return list(queue.enqueue_many(items))
        return list(queue.enqueue_many([item.payload for item in items], type=items[0].type))
    except Error as error:
        shared = isinstance(error, _SHARED)
        return [
            _alone(one, error) if shared or not isinstance(one, NotSent) else AGAIN
            for one in error.results or [error] * len(items)
        ]


def _plain(item: Item) -> bool:
    return item.delay is NOW and item.dedupe_key is None and item.headers is None


def _store_one(queue: Queue, item: Item) -> str:
    return queue.enqueue(
        item.payload,
        type=item.type,
        delay=item.delay,
        dedupe_key=item.dedupe_key,
        headers=item.headers,
    )


def settle(
    one: Callable[[Job], None], many: Callable[[list[Job]], None], jobs: list[Job]
) -> list[Any]:
    """Settles jobs: None or an exception for each. They are settled whatever happens."""
    if len(jobs) == 1:
        one(jobs[0])
        return [None]
    try:
        many(jobs)
    except Error as error:
        return [_alone(result, error) for result in error.results or [error] * len(jobs)]
    return [None] * len(jobs)


def _alone(result: str | Error | None, first: Error) -> str | Error | None:
    """A result as of a call for this item alone; what was not sent failed as the first one did."""
    if not isinstance(result, Error):
        return result
    error = (first if isinstance(result, NotSent) else result).again()
    error.args = (_PLACE.sub("", error.text, count=1),)
    return error
