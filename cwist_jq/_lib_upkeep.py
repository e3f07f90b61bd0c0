"""The native calls of operators: dead letters, statistics, purge, pause. See _lib.py."""

from __future__ import annotations

from cwist_jq import errors
from cwist_jq._lib import check, text, text_or_none
from cwist_jq._native import ffi, lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, NamedTuple

    from cwist_jq._native import Letter, Number, Page, PageOut, QueueHandle, StatsOut

    class Told(NamedTuple):
        """What C tells of a dead letter; times in milliseconds since 1970, 0 is not known."""

        id: str
        type: str | None
        payload: bytes | None
        size: int
        cause: str
        reason: str | None
        attempts: int
        first_ms: int
        died_ms: int
        consumer: str | None
        headers: dict[str, str]


__all__ = [
    "dead_count",
    "dead_list",
    "dead_purge",
    "dead_purge_all",
    "dead_read",
    "dead_requeue",
    "dead_requeue_all",
    "pause",
    "purge",
    "stats",
]


# ---- dead letters ----


def dead_count(queue: QueueHandle) -> int:
    """Counts the dead letters of a queue."""
    out = ffi.new("uint64_t *")
    check(lib.cwist_py_dead_count(queue, out))
    return out[0]


def dead_list(
    queue: QueueHandle, most: int, kind: bytes | None, after: bytes | None, *, oldest_first: bool
) -> tuple[list[Told], str | None]:
    """Reads a page of dead letters without payloads; and its mark, None when it is the last."""
    label = ffi.NULL if kind is None else kind
    mark = ffi.NULL if after is None else after
    return _page(
        lambda out: lib.cwist_py_dead_list(queue, out, most, oldest_first, label, mark),
        payloads=False,
    )


def dead_read(queue: QueueHandle, job_id: bytes) -> Told:
    """Reads one dead letter with its payload."""
    letters, _ = _page(lambda out: lib.cwist_py_dead_read(queue, out, job_id), payloads=True)
    return letters[0]


def _page(read: Callable[[PageOut], int], *, payloads: bool) -> tuple[list[Told], str | None]:
    """Copies a page that C reads, and frees it."""
    out = ffi.new("cwist_job_dead_page_t **")
    try:
        check(read(out))
        return _letters(out[0], payloads=payloads), text_or_none(
            lib.cwist_job_dead_page_mark(out[0])
        )
    finally:
        lib.cwist_job_dead_page_free(out[0])


def _letters(page: Page, *, payloads: bool) -> list[Told]:
    count = lib.cwist_job_dead_page_count(page)
    return [
        _told(lib.cwist_job_dead_page_at(page, index), payload=payloads) for index in range(count)
    ]


def _told(letter: Letter, *, payload: bool) -> Told:
    size = letter.len
    content = ffi.buffer(letter.payload, size)[:] if payload and size else b""
    return (  # type: ignore[return-value]  # to make the class would cost every import
        text(letter.id),
        text_or_none(letter.type),
        content if payload else None,
        size,
        text(letter.cause),
        text_or_none(letter.reason),
        letter.attempts,
        letter.first_ms,
        letter.died_ms,
        text_or_none(letter.consumer),
        _headers(letter),
    )


def _headers(letter: Letter) -> dict[str, str]:
    found: dict[str, str] = {}
    for index in range(letter.header_count):
        header = letter.headers[index]
        found.setdefault(text(header.name), text(header.value))
    return found


def dead_requeue(queue: QueueHandle, job_id: bytes) -> None:
    """Moves a dead letter back into the queue."""
    check(lib.cwist_py_dead_requeue(queue, job_id))


def dead_requeue_all(queue: QueueHandle, kind: bytes | None) -> int:
    """Moves the dead letters of now back into the queue; how many. What is raised has it too."""
    label = ffi.NULL if kind is None else kind
    return _counted(lambda out: lib.cwist_py_dead_requeue_all(queue, label, out))


def dead_purge(queue: QueueHandle, job_id: bytes) -> None:
    """Deletes a dead letter."""
    check(lib.cwist_py_dead_purge(queue, job_id))


def dead_purge_all(queue: QueueHandle, kind: bytes | None, older_than_ms: int) -> int:
    """Deletes dead letters; how many. What is raised has it too."""
    label = ffi.NULL if kind is None else kind
    return _counted(lambda out: lib.cwist_py_dead_purge_all(queue, label, older_than_ms, out))


def _counted(work: Callable[[Number], int]) -> int:
    """The number that a call counts up."""
    out = ffi.new("uint64_t *")
    try:
        check(work(out))
    except errors.Error as error:
        error.done = out[0]
        raise
    return out[0]


# ---- the queue as a whole ----


def stats(queue: QueueHandle) -> StatsOut:
    """Reads the statistics of a queue."""
    out = ffi.new("cwist_job_stats_t *")
    check(lib.cwist_py_stats(queue, out))
    return out


def purge(queue: QueueHandle) -> int:
    """Deletes the jobs that are ready or delayed; how many. What is raised has it too."""
    return _counted(lambda out: lib.cwist_py_purge(queue, out))


def pause(queue: QueueHandle, *, paused: bool) -> None:
    """Stops the claims of a queue, or lets them go on."""
    check(lib.cwist_py_pause(queue, paused))
