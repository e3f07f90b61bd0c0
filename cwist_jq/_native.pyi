# What _lib.py uses of the native module.

from typing import Any, Callable, Literal, Protocol, TypeVar, overload

class Null: ...  # ffi.NULL: fits every pointer.
class ConnHandle: ...  # A cwist_job_conn_t pointer.
class QueueHandle: ...  # A cwist_job_queue_t pointer.
class Text: ...  # A char pointer that C owns.
class TextBuffer(Text): ...  # A char array of ours.
class Memory: ...  # A void pointer that C owns.

class Buffer:  # The memory of a Python object.
    def __len__(self) -> int: ...

class Number:  # A uint64_t of ours.
    def __getitem__(self, index: Literal[0]) -> int: ...

class ConnOut:  # Where a new connection is written.
    def __getitem__(self, index: Literal[0]) -> ConnHandle: ...

class QueueOut:  # Where a new queue is written.
    def __getitem__(self, index: Literal[0]) -> QueueHandle: ...

class Delivery:  # A cwist_py_delivery pointer.
    payload: Memory
    payload_len: int
    id: Text
    type: Text
    attempts: int

class View(Protocol):  # What ffi.buffer() makes.
    def __getitem__(self, index: slice) -> bytes: ...

_T = TypeVar("_T")

class _Ffi:
    NULL: Null
    @overload
    def new(self, kind: Literal["char[]"], init: int) -> TextBuffer: ...
    @overload
    def new(self, kind: Literal["uint64_t *"]) -> Number: ...
    @overload
    def new(self, kind: Literal["cwist_job_conn_t **"]) -> ConnOut: ...
    @overload
    def new(self, kind: Literal["cwist_job_queue_t **"]) -> QueueOut: ...
    @overload
    def new(self, kind: Literal["cwist_py_delivery *"]) -> Delivery: ...
    def gc(self, data: _T, destructor: Callable[[_T], None]) -> _T: ...
    def string(self, data: Text) -> bytes: ...
    def buffer(self, data: Memory, size: int) -> View: ...
    def from_buffer(self, kind: Literal["char[]"], owner: Any) -> Buffer: ...
    def release(self, data: Buffer) -> None: ...

class _Lib:
    CWIST_SUCCESS: int
    CWIST_ERROR_IO: int
    CWIST_ERROR_NOMEM: int
    CWIST_ERROR_INVALID_PARAM: int
    CWIST_ERROR_PROTOCOL: int
    CWIST_ERROR_TIMEOUT: int
    CWIST_ERROR_LEASE_LOST: int
    CWIST_ERROR_CLOSED: int
    CWIST_ERROR_UNSUPPORTED: int
    CWIST_ERROR_TOO_LARGE: int
    CWIST_ERROR_DENIED: int
    CWIST_ERROR_OUTCOME_UNKNOWN: int
    CWIST_ERROR_REFUSED: int
    CWIST_ERROR_CONFLICT: int
    CWIST_ERROR_INTERRUPTED: int
    CWIST_JOB_ID_SIZE: int
    CWIST_JOB_LOG_WARNING: int
    CWIST_JOB_LOG_INFO: int
    CWIST_PY_PENDING: int
    CWIST_PY_SETTLED: int
    CWIST_PY_ACK: int
    CWIST_PY_NACK: int
    CWIST_PY_RELEASE: int

    def cwist_job_version(self) -> Text: ...
    def cwist_job_live_handles(self) -> int: ...
    def cwist_job_last_error(self) -> Text: ...
    def cwist_job_conn_close(self, conn: ConnHandle) -> None: ...
    def cwist_job_queue_destroy(self, queue: QueueHandle) -> None: ...
    def cwist_py_connect(
        self, out: ConnOut, url: bytes, connect_ms: int, operation_ms: int
    ) -> int: ...
    def cwist_py_open(
        self,
        out: QueueOut,
        conn: ConnHandle,
        name: bytes,
        consumer: bytes | Null,
        visibility_ms: int,
        max_retries: int,
        retry_delay_ms: int,
    ) -> int: ...
    def cwist_py_enqueue(
        self,
        queue: QueueHandle,
        payload: bytes | Buffer,
        size: int,
        kind: bytes | Null,
        out: TextBuffer,
    ) -> int: ...
    def cwist_py_dead_count(self, queue: QueueHandle, out: Number) -> int: ...
    def cwist_py_interrupt(self, queue: QueueHandle) -> int: ...
    def cwist_py_claim(
        self, delivery: Delivery, queue: QueueHandle, timeout_ms: int, slice_ms: int
    ) -> int: ...
    def cwist_py_claim_wait(self, delivery: Delivery, slice_ms: int) -> int: ...
    def cwist_py_claim_undo(self, delivery: Delivery, queue: QueueHandle) -> None: ...
    def cwist_py_settle(
        self, delivery: Delivery, queue: QueueHandle, end: int, reason: bytes | Null
    ) -> int: ...
    def cwist_py_extend(self, delivery: Delivery, queue: QueueHandle) -> int: ...
    def cwist_py_is_settled(self, delivery: Delivery) -> bool: ...
    def cwist_py_drop(self, delivery: Delivery) -> None: ...
    def cwist_py_log_waiting(self) -> bool: ...
    def cwist_py_log_take(self, text: TextBuffer, size: int) -> int: ...
    def cwist_py_log_after_fork(self) -> None: ...

ffi: _Ffi
lib: _Lib
