"""Many jobs in one call, cut into the pieces that the library takes."""

from __future__ import annotations

import time
from itertools import islice

from cwist_jq import _lib, options
from cwist_jq.errors import Error, InvalidParam, InvalidType, NotSent
from cwist_jq.item import NOW, PLAIN, Item, extras_of
from cwist_jq.job import Job, LateJob, jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Union

    from cwist_jq._lib import Results
    from cwist_jq._native import Batch, QueueHandle
    from cwist_jq._native import Buffer as Memory
    from cwist_jq.item import Extras, Payload
    from cwist_jq.queue import Queue

    Unsent = Union[Payload, Item]
    Piece = tuple[list[Unsent], Union[list[int], None]]  # with the sizes, as of _small_bytes()

__all__ = ["ack_and_claim", "enqueue_all", "enqueue_many", "settle_many"]

# Payloads that are this small together are copied into one block, which is quicker than to pass
# each by its address.
JOINED_BYTES = 1 << 20
# Each piece has the operation timeout for itself, and of an iterator no more is held.
PIECE_BYTES = 8 << 20


# ---- enqueue ----


def enqueue_many(queue: QueueHandle, payloads: Iterable[Unsent], type: str | None) -> list[str]:
    """Does what Queue.enqueue_many() says."""
    kind = None if type is None else options.kind(type)
    ids: list[str] = []
    for piece, sizes in _pieces(payloads):
        try:
            ids += _store(queue, piece, sizes, kind, whole=False)
        except Error as error:  # noqa: PERF203 (the iterable's own errors are none of ours)
            _name_among_all(error, "items", len(ids))
            error.results = [*ids, *(error.results or [])]
            if isinstance(payloads, (list, tuple)):
                missing = len(payloads) - len(error.results)
                error.results += [_unsent() for _ in range(missing)]
            raise
    return ids


def enqueue_all(queue: QueueHandle, payloads: Iterable[Unsent], type: str | None) -> list[str]:
    """Does what Queue.enqueue_all() says."""
    kind = None if type is None else options.kind(type)
    piece = list(islice(payloads, _lib.BATCH_MAX + 1))
    if len(piece) > _lib.BATCH_MAX:
        raise InvalidParam(
            f"payloads has more than {_lib.BATCH_MAX} items; allowed: up to {_lib.BATCH_MAX}"
        )
    return _store(queue, piece, _small_bytes(piece), kind, whole=True) if piece else []


def _name_among_all(error: Error, what: str, start: int) -> None:
    """Makes the texts of a piece that begins at `start` name the item by its place among all."""
    if start == 0:
        return
    import re  # late: it is the heaviest of all imports, and most programs never need it

    place = re.compile(r"\b(items|jobs)\[(\d+)\]")
    for one in (error, *(error.results or ())):
        if isinstance(one, Error):
            text, named = place.subn(lambda at: f"{at[1]}[{start + int(at[2])}]", one.text, 1)
            if not named and one is error and len(error.results or ()) == 1:
                text = f"{what}[{start}]: {text}"  # the library names the item only among several
            one.args = (text,)


def _unsent() -> NotSent:
    return NotSent("not sent, because an earlier item failed")


def _pieces(payloads: Iterable[Unsent]) -> Iterator[Piece]:
    """Cuts into lists that one call can take: up to BATCH_MAX items, of PIECE_BYTES or one."""
    if not isinstance(payloads, (list, tuple)):
        yield from _cut(payloads)
        return
    for start in range(0, len(payloads), _lib.BATCH_MAX):
        piece = list(payloads[start : start + _lib.BATCH_MAX])
        sizes = _small_bytes(piece)
        if sizes is None:
            yield from _cut(piece)
        else:
            yield piece, sizes


def _cut(payloads: Iterable[Unsent]) -> Iterator[Piece]:
    """Cuts by the size of each item."""
    piece: list[Unsent] = []
    room = PIECE_BYTES
    for item in payloads:
        size = len(item) if type(item) is bytes else _size(item)
        if piece and (size > room or len(piece) == _lib.BATCH_MAX):
            yield piece, _small_bytes(piece)
            piece = []
            room = PIECE_BYTES
        piece.append(item)
        room -= size
    if piece:
        yield piece, _small_bytes(piece)


def _size(item: object) -> int:
    """About how many bytes payload and headers have; what is wrong with them is found later."""
    payload = item.payload if isinstance(item, Item) else item
    size: int = getattr(payload, "nbytes", 0)
    try:
        size = size or len(payload)  # type: ignore[arg-type]
        if isinstance(item, Item) and item.headers:
            size += sum(map(len, item.headers.values()))
    except (AttributeError, TypeError):
        return size
    return size


def _small_bytes(piece: list[Unsent]) -> list[int] | None:
    """The sizes, when all are bytes and small enough to be joined."""
    if set(map(type, piece)) != {bytes}:
        return None
    sizes = list(map(len, piece))  # type: ignore[arg-type]
    return sizes if sum(sizes) <= JOINED_BYTES else None


def _encoded(type: object, known: dict[str, bytes | None]) -> bytes | None:
    """Encodes the type of an item, once for all items of a piece."""
    if not isinstance(type, str):
        return options.kind(type)
    if type not in known:
        known[type] = options.kind(type)
    return known[type]


def _store(
    queue: QueueHandle,
    piece: list[Unsent],
    sizes: list[int] | None,
    kind: bytes | None,
    *,
    whole: bool,
) -> list[str]:
    """Stores one piece; what is raised has results for it. sizes: as of _small_bytes()."""
    if sizes is not None:
        return _lib.enqueue_joined(queue, piece, sizes, kind, whole=whole)  # type: ignore[arg-type]
    encoded: dict[str, bytes | None] = {}
    views: list[Memory] = []
    kinds: list[bytes | None] = []
    extras: dict[int, Extras] = {}
    try:
        for item in piece:
            if isinstance(item, Item):
                views.append(_lib.view(item.payload))
                if not (item.delay is NOW and item.dedupe_key is None and item.headers is None):
                    extras[len(kinds)] = extras_of(item.delay, item.dedupe_key, item.headers)
                kinds.append(kind if item.type is None else _encoded(item.type, encoded))
            else:
                views.append(_lib.view(item))
                kinds.append(kind)
    except Error as error:
        bad = len(kinds)
        error.args = (f"items[{bad}]: {error.text}",)
        error.results = [_unsent() for _ in piece]
        error.results[bad] = error.again()
        raise
    every = [extras.get(index, PLAIN) for index in range(len(piece))] if extras else []
    return _lib.enqueue_apart(queue, views, kinds, every, whole=whole)


# ---- settle and claim ----


def settle_many(
    queue: QueueHandle,
    jobs: Iterable[Job],
    settle: Callable[[QueueHandle, list[Batch], list[int]], None],
) -> None:
    """Settles jobs in pieces; raises the first failure, with the results of all."""
    checked = _checked(jobs)
    first: Error | None = None
    results: Results = []
    for start in range(0, len(checked), _lib.BATCH_MAX):
        piece = checked[start : start + _lib.BATCH_MAX]
        try:
            settle(queue, *_places(piece))
            results += [None] * len(piece)
        except Error as error:
            _name_among_all(error, "jobs", start)
            first = first or error
            results += error.results or []
    if first is not None:
        first.results = results
        raise first


def _checked(jobs: Iterable[Job]) -> list[Job]:
    """The jobs as a list that nobody else changes, all payloads copied: settling frees them."""
    checked: list[Any] = list(jobs)  # what a caller gives is not always what it should be
    if any([type(job) is not Job for job in checked]):  # noqa: C419 (a list is quicker)
        for index, job in enumerate(checked):
            if isinstance(job, LateJob):
                job.keep_payload()
            elif not isinstance(job, Job):
                raise _no_job(index, job)
    return checked


def _no_job(index: int, wrong: object) -> InvalidType:
    return InvalidType(f"jobs[{index}] is a {type(wrong).__name__}; allowed: a Job")


def ack_and_claim(
    queue: Queue, handle: QueueHandle, jobs: Iterable[Job], most: int, timeout_ms: int
) -> list[Job]:
    """Does what Queue.ack_and_claim() says."""
    deadline = time.monotonic() + timeout_ms / 1000
    done = _checked(jobs)
    early = (len(done) - 1) // _lib.BATCH_MAX * _lib.BATCH_MAX if done else 0
    results: Results = []
    claimed = _lib.new_batch()
    # A signal may raise anywhere in here, also right behind the call that brought the jobs.
    try:
        failed = _ack_early(handle, done[:early], results)
        came, cut = False, None
        if done:
            came, told, cut = _lib.ack_and_poll(claimed, handle, most, *_places(done[early:]))
            results += told
            failed = failed or _first(told)
        if cut is None and failed is None and not came and (timeout_ms > 0 or not done):
            if timeout_ms != options.FOR_EVER_MS:
                timeout_ms = max(0, round((deadline - time.monotonic()) * 1000))
            came = _lib.claim(claimed, handle, most, timeout_ms)
        got = jobs_of(queue, claimed) if came else []
    except BaseException as error:
        _lib.abandon(claimed, handle)
        if isinstance(error, Error):
            error.results = results
        raise
    if cut is not None:
        _lib.abandon(claimed, handle)
        failed = cut
    if failed is not None:
        failed.results = results
        failed.claimed = got
        raise failed
    return got


def _places(jobs: list[Job]) -> tuple[list[Batch], list[int]]:
    return [job._batch for job in jobs], [job._index for job in jobs]  # noqa: SLF001 (one package)


def _ack_early(queue: QueueHandle, jobs: list[Job], results: Results) -> Error | None:
    """Acks the pieces before the last; adds to the results, and returns the first failure."""
    try:
        settle_many(queue, jobs, _lib.ack_many)
    except Error as error:
        results += error.results or []
        return error
    results += [None] * len(jobs)
    return None


def _first(results: Results) -> Error | None:
    """The first failure among results, as an exception to be raised with them."""
    for result in results:
        if isinstance(result, Error):
            return result.again()
    return None
