"""The only module that touches the native library: handles in, Python objects and exceptions out.

Every call gives up the interpreter's lock while it is in C. Handles are numbers that the library
checks, so one that was closed, or that a forked child inherited, is an error and never a crash.
"""

from __future__ import annotations

import os
import sys

from cwist_jq import errors
from cwist_jq._native import ffi, lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cwist_jq._native import Buffer, ConnHandle, Delivery, QueueHandle

__all__ = [
    "abandon",
    "ack",
    "claim",
    "close_connection",
    "close_queue",
    "connect",
    "dead_count",
    "describe",
    "enqueue",
    "extend",
    "interrupt",
    "is_settled",
    "live_handles",
    "nack",
    "new_delivery",
    "open_queue",
    "release",
    "version",
]

# How long a blocked claim stays in C before Python looks for signals and log lines.
SLICE_MS = 200
LOG_TEXT = 512

_SUCCESS: int = lib.CWIST_SUCCESS
_TIMEOUT: int = lib.CWIST_ERROR_TIMEOUT
_PENDING: int = lib.CWIST_PY_PENDING
_SETTLED: int = lib.CWIST_PY_SETTLED
_ID_SIZE: int = lib.CWIST_JOB_ID_SIZE

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
}

if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=lib.cwist_py_log_after_fork)


def version() -> str:
    """The version of the C library."""
    return ffi.string(lib.cwist_job_version()).decode("ascii")


def live_handles() -> int:
    """How many connections, queues, jobs and claims of this process are alive in C."""
    return lib.cwist_job_live_handles()


# ---- errors and log ----


def _fail(code: int) -> NoReturn:
    """Raises the exception of a code, with the text of this thread's last error."""
    if code == _SETTLED:
        raise errors.Closed("the job was acked, nacked or released before")
    text = ffi.string(lib.cwist_job_last_error()).decode("utf-8", "replace")
    _drain_log()
    kind = _EXCEPTIONS.get(code)
    if kind is not None:
        raise kind(text)
    error = errors.Error(text)
    error.code = code
    raise error


def _check(code: int) -> None:
    """Raises unless the code says success; logs what the library had to say."""
    if code != _SUCCESS:
        _fail(code)
    if lib.cwist_py_log_waiting():
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


# ---- connections and queues ----


def connect(url: bytes, connect_ms: int, operation_ms: int) -> ConnHandle:
    """Opens a connection."""
    out = ffi.new("cwist_job_conn_t **")
    try:
        _check(lib.cwist_py_connect(out, url, connect_ms, operation_ms))
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
) -> QueueHandle:
    """Opens a queue on a connection."""
    out = ffi.new("cwist_job_queue_t **")
    label = ffi.NULL if consumer is None else consumer
    try:
        _check(
            lib.cwist_py_open(out, conn, name, label, visibility_ms, max_retries, retry_delay_ms)
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
    out = ffi.new("char[]", _ID_SIZE)
    label = ffi.NULL if kind is None else kind
    if isinstance(payload, bytes):
        code = lib.cwist_py_enqueue(queue, payload, len(payload), label, out)
    else:
        view = _buffer(payload)
        try:
            code = lib.cwist_py_enqueue(queue, view, len(view), label, out)
        finally:
            ffi.release(view)
    _check(code)
    return ffi.string(out).decode("utf-8", "replace")


def _buffer(payload: object) -> Buffer:
    """The memory of a bytes-like object, which stays locked until the result is released."""
    if isinstance(payload, str):
        raise errors.InvalidType("payload is a str; encode it, for example with payload.encode()")
    try:
        return ffi.from_buffer("char[]", payload)
    except TypeError:
        kind = type(payload).__name__
        raise errors.InvalidType(f"payload is a {kind}; allowed: a bytes-like object") from None
    except (BufferError, ValueError) as error:
        raise errors.InvalidParam(f"payload is no contiguous buffer: {error}") from error


def dead_count(queue: QueueHandle) -> int:
    """Counts the dead letters of a queue."""
    out = ffi.new("uint64_t *")
    _check(lib.cwist_py_dead_count(queue, out))
    return out[0]


def interrupt(queue: QueueHandle) -> None:
    """Wakes the blocked claims of a queue."""
    _check(lib.cwist_py_interrupt(queue))


# ---- deliveries ----


def new_delivery() -> Delivery:
    """Makes the place where a claim puts its job. Dropping it drops the job, undecided."""
    return ffi.gc(ffi.new("cwist_py_delivery *"), lib.cwist_py_drop)


def claim(delivery: Delivery, queue: QueueHandle, timeout_ms: int) -> bool:
    """Claims a job into the delivery; False when none came in time.

    Whatever is raised here or later, also by a signal, abandon() hands back what it holds.
    """
    code = lib.cwist_py_claim(delivery, queue, timeout_ms, SLICE_MS)
    while code == _PENDING:
        if lib.cwist_py_log_waiting():
            _drain_log()
        code = lib.cwist_py_claim_wait(delivery, SLICE_MS)
    if code == _TIMEOUT:
        _drain_log()
        return False
    _check(code)
    return True


def describe(delivery: Delivery) -> tuple[bytes, str | None, str, int]:
    """Payload, type, id and attempts of a claimed job."""
    size = delivery.payload_len
    payload = ffi.buffer(delivery.payload, size)[:] if size else b""
    kind = ffi.string(delivery.type).decode("utf-8", "replace") if delivery.type else None
    return payload, kind, ffi.string(delivery.id).decode("utf-8", "replace"), delivery.attempts


def abandon(delivery: Delivery, queue: QueueHandle) -> None:
    """Ends a claim and hands its job back, if it has one; no attempt is spent. Never raises."""
    lib.cwist_py_claim_undo(delivery, queue)


def is_settled(delivery: Delivery) -> bool:
    """True when the job was acked, nacked or released, or handed back."""
    return lib.cwist_py_is_settled(delivery)


def ack(delivery: Delivery, queue: QueueHandle) -> None:
    """Removes the job."""
    _check(lib.cwist_py_settle(delivery, queue, lib.CWIST_PY_ACK, ffi.NULL))


def nack(delivery: Delivery, queue: QueueHandle, reason: bytes | None) -> None:
    """Hands the job back for a retry, or to the dead letters."""
    why = ffi.NULL if reason is None else reason
    _check(lib.cwist_py_settle(delivery, queue, lib.CWIST_PY_NACK, why))


def release(delivery: Delivery, queue: QueueHandle) -> None:
    """Hands the job back as if it had not been claimed."""
    _check(lib.cwist_py_settle(delivery, queue, lib.CWIST_PY_RELEASE, ffi.NULL))


def extend(delivery: Delivery, queue: QueueHandle) -> None:
    """Restarts the visibility clock of the job."""
    _check(lib.cwist_py_extend(delivery, queue))
