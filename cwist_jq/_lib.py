"""The only module that touches the native library: handles in, Python objects and exceptions out.

Every call gives up the interpreter's lock while it is in C. Handles are numbers that the library
checks, so one that was closed, or that a forked child inherited, is an error and never a crash.
"""

from __future__ import annotations

import os
import sys

from cwist_jq import errors
from cwist_jq._native import ffi, lib
from cwist_jq.ids import DuplicateId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Union

    from cwist_jq._native import (
        Batch,
        Buffer,
        ConnHandle,
        Null,
        QueueHandle,
        Stored,
        StoredArray,
        Text,
        TextBuffer,
    )
    from cwist_jq.item import Extras

    Results = list[Union[str, errors.Error, None]]

__all__ = [
    "abandon",
    "ack",
    "ack_and_poll",
    "ack_many",
    "check",
    "claim",
    "claim_while",
    "close_connection",
    "close_queue",
    "connect",
    "describe",
    "describe_one",
    "enqueue",
    "enqueue_apart",
    "enqueue_item",
    "enqueue_joined",
    "extend",
    "headers",
    "headers_of",
    "interrupt",
    "is_settled",
    "lease_lost",
    "lease_remaining",
    "live_handles",
    "nack",
    "nack_many",
    "new_batch",
    "open_queue",
    "payload",
    "release",
    "release_many",
    "renew",
    "text",
    "text_or_none",
    "version",
    "view",
]

# How long a blocked claim stays in C before Python looks for signals and log lines.
SLICE_MS = 200
LOG_TEXT = 512

_NULL = ffi.NULL
_SUCCESS: int = lib.CWIST_SUCCESS
_TIMEOUT: int = lib.CWIST_ERROR_TIMEOUT
_PENDING: int = lib.CWIST_PY_PENDING
_SETTLED: int = lib.CWIST_PY_SETTLED
_NO_MEMORY: int = lib.CWIST_PY_NO_MEMORY
_LOGGED: int = lib.CWIST_PY_LOGGED
_NOT_SENT: int = lib.CWIST_ERROR_NOT_SENT
_ACK: int = lib.CWIST_PY_ACK
_DUPLICATE: str = chr(lib.CWIST_PY_DUPLICATE)
BATCH_MAX: int = lib.CWIST_JOB_BATCH_MAX
SMALL: int = lib.CWIST_PY_SMALL  # a payload up to this size comes with its job, see describe()
_ID_SIZE: int = lib.CWIST_JOB_ID_SIZE

BACKOFFS = {
    "fixed": lib.CWIST_JOB_BACKOFF_FIXED,
    "exponential": lib.CWIST_JOB_BACKOFF_EXPONENTIAL,
}

_EXCEPTIONS: dict[int, type[errors.Error]] = {
    lib.CWIST_ERROR_IO: errors.ConnectionFailed,
    lib.CWIST_ERROR_NOMEM: errors.OutOfMemory,
    lib.CWIST_ERROR_INVALID_PARAM: errors.InvalidParam,
    lib.CWIST_ERROR_PROTOCOL: errors.ProtocolError,
    lib.CWIST_ERROR_TIMEOUT: errors.Timeout,
    lib.CWIST_ERROR_LEASE_LOST: errors.LeaseLost,
    lib.CWIST_ERROR_CLOSED: errors.Closed,
    lib.CWIST_ERROR_UNSUPPORTED: errors.Unsupported,
    lib.CWIST_ERROR_TOO_LARGE: errors.TooLarge,
    lib.CWIST_ERROR_DENIED: errors.Denied,
    lib.CWIST_ERROR_OUTCOME_UNKNOWN: errors.OutcomeUnknown,
    lib.CWIST_ERROR_REFUSED: errors.Refused,
    lib.CWIST_ERROR_CONFLICT: errors.Conflict,
    lib.CWIST_ERROR_INTERRUPTED: errors.Interrupted,
    lib.CWIST_ERROR_NOT_SENT: errors.NotSent,
    lib.CWIST_ERROR_NOT_FOUND: errors.NotFound,
    lib.CWIST_ERROR_FULL: errors.QueueFull,
}

# The library has a text for the first failure of a batch; these tell of the others.
_EXPLAINED: dict[int, str] = {
    lib.CWIST_ERROR_IO: "the connection broke; nothing changed",
    lib.CWIST_ERROR_LEASE_LOST: "the job was given to another worker; nothing changed",
    lib.CWIST_ERROR_CLOSED: "the job was acked, nacked or released before, or its queue is closed",
    lib.CWIST_ERROR_INVALID_PARAM: "the job was claimed through another queue object",
    lib.CWIST_ERROR_OUTCOME_UNKNOWN: "the answer was lost: done, or not",
    lib.CWIST_ERROR_NOT_SENT: "not sent, because an earlier item failed",
    lib.CWIST_ERROR_FULL: "the queue holds max_length jobs; nothing was stored",
}

# Looked up once: what single calls use.
_new = ffi.new
_gc = ffi.gc
_string = ffi.string
_unpack = ffi.unpack
_enqueue = lib.cwist_py_enqueue
_claim = lib.cwist_py_claim
_ack = lib.cwist_py_ack
_drop = lib.cwist_py_drop

# Memory that C fills in before anybody reads it.
_room = ffi.new_allocator(should_clear_after_alloc=False)

if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=lib.cwist_py_log_after_fork)


def version() -> str:
    """The version of the C library."""
    return ffi.string(lib.cwist_job_version()).decode("ascii")


def live_handles() -> int:
    """How many connections, queues, jobs and claims of this process are alive in C."""
    return lib.cwist_job_live_handles()


# ---- errors and log ----


def _error(code: int, text: str) -> errors.Error:
    """The exception of a code."""
    kind = _EXCEPTIONS.get(code)
    if kind is not None:
        return kind(text)
    error = errors.Error(text)
    error.code = code
    return error


def _last_error(code: int) -> errors.Error:
    """The exception of a code, with the text of this thread's last error."""
    if code == _SETTLED:
        return errors.Closed("the job was acked, nacked or released before")
    if code == _NO_MEMORY:
        return errors.OutOfMemory("out of memory")
    text = ffi.string(lib.cwist_job_last_error()).decode("utf-8", "replace")
    _drain_log()
    return _error(code, text)


def check(code: int) -> None:
    """Raises unless the code says success; logs what the library had to say."""
    if code != _SUCCESS:
        _tell(code)


def _tell(code: int) -> None:
    """Logs what the library had to say, when that is all; else raises the exception of the code."""
    if code != _LOGGED:
        raise _last_error(code)
    _drain_log()


def _drain_log() -> None:
    """Passes the lines that the library logged on to the logger "cwist_jq"."""
    if not lib.cwist_py_log_waiting() or sys.is_finalizing():
        return
    import logging

    logger = logging.getLogger("cwist_jq")
    levels = {lib.CWIST_JOB_LOG_WARNING: logging.WARNING, lib.CWIST_JOB_LOG_INFO: logging.INFO}
    text = ffi.new("char[]", LOG_TEXT)
    while (level := lib.cwist_py_log_take(text, LOG_TEXT)) != 0:
        line = ffi.string(text).decode("utf-8", "replace")
        logger.log(levels.get(level, logging.DEBUG), "%s", line)


# ---- texts ----


def text(words: Text) -> str:
    """A text that C wrote."""
    return ffi.string(words).decode("utf-8", "replace")


def text_or_none(words: Text) -> str | None:
    """A text that C wrote, None for NULL."""
    return text(words) if words else None


def headers_of(joined: bytes) -> dict[str, str]:
    """Takes a text of headers apart; of several with one name the first counts."""
    texts = joined.decode("utf-8", "replace").split("\0")
    found: dict[str, str] = {}
    for name, value in zip(texts[::2], texts[1::2]):
        found.setdefault(name, value)
    return found


# ---- connections and queues ----


def connect(url: bytes, connect_ms: int, operation_ms: int) -> ConnHandle:
    """Opens a connection."""
    out = ffi.new("cwist_job_conn_t **")
    try:
        check(lib.cwist_py_connect(out, url, connect_ms, operation_ms))
        return out[0]
    except BaseException:
        lib.cwist_job_conn_close(out[0])
        raise


def close_connection(conn: ConnHandle) -> None:
    """Closes a connection; a closed one is left alone."""
    lib.cwist_job_conn_close(conn)
    _drain_log()


def open_queue(  # noqa: PLR0913, PLR0917 (one for each option)
    conn: ConnHandle,
    name: bytes,
    consumer: bytes | None,
    visibility_ms: int,
    max_retries: int,
    retry_delay_ms: int,
    further: dict[str, int],
) -> QueueHandle:
    """Opens a queue on a connection; `further` are fields of cwist_job_queue_ext_opts_t."""
    ext = ffi.new("cwist_job_queue_ext_opts_t *")
    lib.cwist_job_queue_ext_opts_init(ext)
    for field, value in further.items():
        setattr(ext, field, value)
    out = ffi.new("cwist_job_queue_t **")
    label = ffi.NULL if consumer is None else consumer
    try:
        check(
            lib.cwist_py_open(
                out, conn, name, label, visibility_ms, max_retries, retry_delay_ms, ext
            )
        )
        return out[0]
    except BaseException:
        lib.cwist_job_queue_destroy(out[0])
        raise


def close_queue(queue: QueueHandle) -> None:
    """Closes a queue and wakes its blocked claims; a closed one is left alone."""
    lib.cwist_job_queue_destroy(queue)
    _drain_log()


def enqueue(queue: QueueHandle, payload: object, kind: bytes | None) -> str:
    """Stores a job; its id."""
    out = _new("char[]", _ID_SIZE)
    label = _NULL if kind is None else kind
    if isinstance(payload, bytes):
        code = _enqueue(queue, payload, len(payload), label, out)
    else:
        memory = view(payload)
        try:
            code = _enqueue(queue, memory, len(memory), label, out)
        finally:
            ffi.release(memory)
    if code:
        _tell(code)
    return _string(out).decode("ascii", "replace")


def enqueue_item(queue: QueueHandle, payload: object, kind: bytes | None, extras: Extras) -> str:
    """Stores a job with options; its id."""
    delay_ms, key, packed, count = extras
    stored = ffi.new("cwist_job_stored_t *")
    memory = view(payload)
    try:
        check(
            lib.cwist_py_enqueue_item(
                queue,
                stored,
                memory,
                len(memory),
                ffi.NULL if kind is None else kind,
                delay_ms,
                ffi.NULL if key is None else key,
                packed,
                count,
            )
        )
    finally:
        ffi.release(memory)
    return _id(stored)


def view(payload: object) -> Buffer:
    """The memory of a bytes-like object, which stays locked while the result is in use."""
    if isinstance(payload, str):
        raise errors.InvalidType("payload is a str; encode it, for example with payload.encode()")
    try:
        return ffi.from_buffer("char[]", payload)
    except TypeError:
        kind = type(payload).__name__
        raise errors.InvalidType(f"payload is a {kind}; allowed: a bytes-like object") from None
    except (BufferError, ValueError) as error:
        raise errors.InvalidParam(f"payload is no contiguous buffer: {error}") from error


def enqueue_joined(
    queue: QueueHandle, payloads: list[bytes], sizes: list[int], kind: bytes | None, *, whole: bool
) -> list[str]:
    """Stores up to BATCH_MAX jobs of one type whose payloads are bytes; their ids.

    What is raised has the results.
    """
    count = len(payloads)
    stored = _room("cwist_job_stored_t[]", count)
    code = lib.cwist_py_enqueue_joined(
        queue,
        _room("cwist_job_item_t[]", count),
        stored,
        count,
        b"".join(payloads),
        ffi.new("size_t[]", sizes),
        ffi.NULL if kind is None else kind,
        whole,
    )
    return _ids(code, stored, count)


def enqueue_apart(
    queue: QueueHandle,
    payloads: list[Buffer],
    kinds: list[bytes | None],
    extras: list[Extras],
    *,
    whole: bool,
) -> list[str]:
    """Stores up to BATCH_MAX jobs whose payloads are left where they are; their ids.

    extras: one for each, or none at all. What is raised has the results.
    """
    count = len(payloads)
    stored = _room("cwist_job_stored_t[]", count)
    labels = _labels(kinds)
    keys = _labels([extra[1] for extra in extras])
    counts = [extra[3] for extra in extras]
    code = lib.cwist_py_enqueue_apart(
        queue,
        _room("cwist_job_item_t[]", count),
        stored,
        count,
        ffi.new("char *[]", payloads),
        ffi.new("size_t[]", list(map(len, payloads))),
        ffi.new("char *[]", labels),
        whole,
        ffi.new("uint64_t[]", [extra[0] for extra in extras]) if extras else ffi.NULL,
        ffi.new("char *[]", keys),
        b"".join([extra[2] for extra in extras]),
        ffi.new("size_t[]", counts),
        _room("cwist_job_header_t[]", sum(counts)),
    )
    return _ids(code, stored, count)


def _labels(texts: list[bytes | None]) -> list[TextBuffer | Null]:
    """The texts in memory of C, equal ones once. The list keeps them there."""
    made = {text: ffi.NULL if text is None else ffi.new("char[]", text) for text in set(texts)}
    return [made[text] for text in texts]


def _id(stored: Stored) -> str:
    """The id of one stored job."""
    found = ffi.string(stored.id).decode("ascii", "replace")
    return DuplicateId(found) if stored.duplicate else found


def _ids(code: int, stored: StoredArray, count: int) -> list[str]:
    """The ids of stored jobs; raises with all results when one was not stored."""
    if code in (_SUCCESS, _LOGGED):
        _drain_log()
        joined = ffi.string(ffi.cast("char *", stored)).decode("ascii", "replace")
        ids = joined.split("\n")
        if _DUPLICATE in joined:
            return [DuplicateId(one[1:]) if one[0] == _DUPLICATE else one for one in ids]
        return ids
    error = _last_error(code)
    codes = [stored[index].code for index in range(count)]
    found = [_id(stored[index]) if done == _SUCCESS else None for index, done in enumerate(codes)]
    error.results = _results(codes, found, error)
    raise error


def _explained(code: int) -> str:
    """What a code says of an item for which the library has no text."""
    return _EXPLAINED.get(code) or ffi.string(lib.cwist_job_error_name(code)).decode("ascii")


def _results(codes: list[int], good: list[str | None], error: errors.Error) -> Results:
    """What became of each item: what is good, or an exception; the error's text is the first's."""
    told = next((i for i, code in enumerate(codes) if code not in (_SUCCESS, _NOT_SENT)), 0)
    return [
        result
        if code == _SUCCESS
        else _error(*((error.code, error.text) if index == told else (code, _explained(code))))
        for index, (code, result) in enumerate(zip(codes, good))
    ]


def interrupt(queue: QueueHandle) -> None:
    """Wakes the blocked claims of a queue."""
    check(lib.cwist_py_interrupt(queue))


# ---- claims ----


def new_batch() -> Batch:
    """Makes the place where a claim puts its jobs. Dropping it drops them, undecided."""
    return _gc(_new("cwist_py_batch *"), _drop)


def claim(batch: Batch, queue: QueueHandle, most: int, timeout_ms: int) -> bool:
    """Claims up to `most` jobs into the batch; False when none came in time.

    Whatever is raised here or later, also by a signal, abandon() hands back what it holds.
    """
    code = _claim(batch, queue, most, timeout_ms, SLICE_MS)
    while code == _PENDING:
        if lib.cwist_py_log_waiting():
            _drain_log()
        code = lib.cwist_py_claim_wait(batch, SLICE_MS)
    if code == _TIMEOUT:
        _drain_log()
        return False
    if code:
        _tell(code)
    return True


def claim_while(  # noqa: PLR0913, PLR0917 (those of claim() and two more)
    batch: Batch,
    queue: QueueHandle,
    most: int,
    timeout_ms: int,
    slice_ms: int,
    wanted: Callable[[], bool],
) -> bool | None:
    """Does what claim() does, and asks after each slice whether it still should; None if not."""
    code = _claim(batch, queue, most, timeout_ms, slice_ms)
    while code == _PENDING:
        if not wanted():
            return None
        if lib.cwist_py_log_waiting():
            _drain_log()
        code = lib.cwist_py_claim_wait(batch, slice_ms)
    if code == _TIMEOUT:
        _drain_log()
        return False
    if code:
        _tell(code)
    return True


def describe(batch: Batch) -> tuple[list[str], bytes, list[int], list[int]]:
    """What came with a claim. It can be asked once: the C side keeps no second copy.

    Returns:
        The id and the type ("" is none) of each job in turn; the payloads of up to SMALL bytes, one
        behind the other; the sizes of all payloads; the attempts.
    """
    count = batch.count
    texts = ffi.unpack(batch.texts, batch.texts_len - 1).decode("utf-8", "replace").split("\0")
    size = batch.payloads_len
    payloads = ffi.unpack(batch.payloads, size) if size else b""
    lib.cwist_py_described(batch)
    return texts, payloads, ffi.unpack(batch.sizes, count), ffi.unpack(batch.attempts, count)


def describe_one(batch: Batch) -> tuple[str, str, bytes, int, int]:
    """What came with a claim of one job: id, type, payload if it is small, its size, attempts."""
    both = _unpack(batch.texts, batch.texts_len + batch.payloads_len)
    name, kind, payload = both.split(b"\0", 2)
    return (
        name.decode("ascii", "replace"),
        kind.decode("utf-8", "replace"),
        payload,
        batch.size,
        batch.attempt,
    )


def payload(batch: Batch, index: int) -> bytes:
    """Copies the payload of a job that is not settled, and does not become so meanwhile."""
    memory = lib.cwist_py_payload(batch, index)
    if not memory:
        raise errors.Closed("the job was claimed in another process")
    return ffi.buffer(memory, batch.sizes[index])[:]


def headers(batch: Batch, index: int) -> dict[str, str]:
    """The headers of a job, settled or not."""
    size = ffi.new("size_t *")
    joined = lib.cwist_py_headers(batch, index, size)
    return headers_of(ffi.unpack(joined, size[0])) if joined else {}


def abandon(batch: Batch, queue: QueueHandle) -> None:
    """Ends a claim and hands its jobs back, if it has some; no attempt is spent. Never raises."""
    lib.cwist_py_claim_undo(batch, queue)


# ---- one job ----


def is_settled(batch: Batch, index: int) -> bool:
    """True when the job was acked, nacked or released, or handed back."""
    return lib.cwist_py_is_settled(batch, index)


def ack(batch: Batch, index: int, queue: QueueHandle) -> None:
    """Removes the job."""
    code = _ack(batch, index, queue)
    if code:
        _tell(code)


def nack(  # noqa: PLR0913 (one for each option)
    batch: Batch,
    index: int,
    queue: QueueHandle,
    reason: bytes | None,
    delay_ms: int | None = None,
    *,
    dead: bool = False,
) -> None:
    """Hands the job back for a retry, or to the dead letters. delay_ms: else the queue's policy."""
    why = ffi.NULL if reason is None else reason
    delayed = delay_ms is not None
    check(lib.cwist_py_nack(batch, index, queue, why, dead, delayed, delay_ms or 0))


def release(batch: Batch, index: int, queue: QueueHandle, delay_ms: int = 0) -> None:
    """Hands the job back as if it had not been claimed, to be claimed after the delay."""
    check(lib.cwist_py_release(batch, index, queue, delay_ms))


def extend(batch: Batch, index: int, queue: QueueHandle) -> None:
    """Restarts the visibility clock of the job."""
    check(lib.cwist_py_extend(batch, index, queue))


def renew(batch: Batch, index: int, queue: QueueHandle) -> None:
    """Makes the library keep the lease of the job."""
    check(lib.cwist_py_renew(batch, index, queue))


def lease_lost(batch: Batch, index: int) -> bool:
    """True when another worker may have the job, as far as is known here."""
    return lib.cwist_py_lease_lost(batch, index)


def lease_remaining(batch: Batch, index: int) -> float:
    """Seconds until another worker may have the job; 0 when it is settled."""
    return lib.cwist_py_lease_ms(batch, index) / 1000


# ---- many jobs ----


def ack_many(queue: QueueHandle, batches: list[Batch], indices: list[int]) -> None:
    """Removes jobs, up to BATCH_MAX. What is raised has the results."""
    _settle_many(queue, batches, indices, _ACK)


def nack_many(queue: QueueHandle, batches: list[Batch], indices: list[int]) -> None:
    """Hands jobs back for a retry, or to the dead letters. What is raised has the results."""
    _settle_many(queue, batches, indices, lib.CWIST_PY_NACK)


def release_many(queue: QueueHandle, batches: list[Batch], indices: list[int]) -> None:
    """Hands jobs back as if they had not been claimed. What is raised has the results."""
    _settle_many(queue, batches, indices, lib.CWIST_PY_RELEASE)


def _settle_many(queue: QueueHandle, batches: list[Batch], indices: list[int], end: int) -> None:
    count = len(batches)
    codes = ffi.new("int[]", count)
    code = lib.cwist_py_settle_many(
        ffi.new("cwist_py_batch *[]", batches),
        ffi.new("uint32_t[]", indices),
        count,
        queue,
        end,
        codes,
    )
    if code in (_SUCCESS, _LOGGED):
        _drain_log()
        return
    error = _last_error(code)
    error.results = _results(ffi.unpack(codes, count), [None] * count, error)
    raise error


def ack_and_poll(
    claimed: Batch, queue: QueueHandle, most: int, batches: list[Batch], indices: list[int]
) -> tuple[bool, Results, errors.Error | None]:
    """Removes jobs, 1 to BATCH_MAX, and claims up to `most` that are ready.

    Returns:
        Whether jobs came; what became of each ack: None or an exception; why there can be no claim.
    """
    count = len(batches)
    codes = ffi.new("int[]", count)
    code = lib.cwist_py_ack_and_claim(
        claimed,
        queue,
        most,
        ffi.new("cwist_py_batch *[]", batches),
        ffi.new("uint32_t[]", indices),
        count,
        codes,
    )
    failed = None if code in (_SUCCESS, _LOGGED, _TIMEOUT) else _last_error(code)
    _drain_log()
    results: Results = [
        None if done == _SUCCESS else _error(done, f"ack: {_explained(done)}")
        for done in ffi.unpack(codes, count)
    ]
    return code in (_SUCCESS, _LOGGED), results, failed
