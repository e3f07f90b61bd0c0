# What _lib.py uses of the native module.

from collections.abc import Sequence
from typing import Any, Callable, Literal, Protocol, TypeVar, overload

_T = TypeVar("_T")

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

class Numbers:  # An array of whole numbers.
    def __getitem__(self, index: int) -> int: ...

class Pointers: ...  # An array of pointers of ours.

class Stored:  # A cwist_job_stored_t.
    code: int
    duplicate: bool
    id: Text

class Further: ...  # A cwist_job_queue_ext_opts_t of ours.

class Size:  # A size_t of ours.
    def __getitem__(self, index: Literal[0]) -> int: ...

class Header:  # A cwist_job_header_t.
    name: Text
    value: Text

class Headers:  # An array of headers.
    def __getitem__(self, index: int) -> Header: ...

class HeaderArray: ...  # Room for headers.
class Page: ...  # A cwist_job_dead_page_t pointer.

class PageOut:  # Where a new page is written.
    def __getitem__(self, index: Literal[0]) -> Page: ...

class Letter:  # A cwist_job_dead_letter_t pointer.
    id: Text
    type: Text
    cause: Text
    reason: Text
    consumer: Text
    attempts: int
    first_ms: int
    died_ms: int
    len: int
    payload: Memory
    headers: Headers
    header_count: int

class StatsOut:  # A cwist_job_stats_t of ours.
    ready: int
    claimed: int
    delayed: int
    dead: int
    oldest_ready_ms: int
    consumers: int
    paused: bool
    enqueued: int
    delivered: int
    acked: int
    nacked: int
    released: int
    buried: int

class StoredArray:
    def __getitem__(self, index: int) -> Stored: ...

class ItemArray: ...  # Room for items.

class Batch:  # A cwist_py_batch pointer.
    count: int
    texts: Text
    texts_len: int
    payloads: Text
    payloads_len: int
    sizes: Numbers
    attempts: Numbers
    size: int
    attempt: int

class View(Protocol):  # What ffi.buffer() makes.
    def __getitem__(self, index: slice) -> bytes: ...

class _Allocator:
    @overload
    def __call__(self, kind: Literal["cwist_job_stored_t[]"], size: int) -> StoredArray: ...
    @overload
    def __call__(self, kind: Literal["cwist_job_item_t[]"], size: int) -> ItemArray: ...
    @overload
    def __call__(self, kind: Literal["cwist_job_header_t[]"], size: int) -> HeaderArray: ...

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
    def new(self, kind: Literal["cwist_py_batch *"]) -> Batch: ...
    @overload
    def new(self, kind: Literal["cwist_job_queue_ext_opts_t *"]) -> Further: ...
    @overload
    def new(self, kind: Literal["cwist_job_stored_t *"]) -> Stored: ...
    @overload
    def new(self, kind: Literal["cwist_job_dead_page_t **"]) -> PageOut: ...
    @overload
    def new(self, kind: Literal["cwist_job_stats_t *"]) -> StatsOut: ...
    @overload
    def new(self, kind: Literal["size_t *"]) -> Size: ...
    @overload
    def new(self, kind: Literal["char[]"], init: bytes) -> TextBuffer: ...
    @overload
    def new(self, kind: Literal["int[]"], init: int) -> Numbers: ...
    @overload
    def new(
        self, kind: Literal["size_t[]", "uint32_t[]", "uint64_t[]"], init: list[int]
    ) -> Numbers: ...
    @overload
    def new(self, kind: Literal["cwist_py_batch *[]"], init: list[Batch]) -> Pointers: ...
    @overload
    def new(
        self, kind: Literal["char *[]"], init: Sequence[Buffer | TextBuffer | Null]
    ) -> Pointers: ...
    def new_allocator(self, *, should_clear_after_alloc: bool) -> _Allocator: ...
    def cast(self, kind: Literal["char *"], data: StoredArray) -> Text: ...
    @overload
    def unpack(self, data: Text, size: int) -> bytes: ...
    @overload
    def unpack(self, data: Numbers, size: int) -> list[int]: ...
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
    CWIST_ERROR_NOT_SENT: int
    CWIST_ERROR_NOT_FOUND: int
    CWIST_ERROR_FULL: int
    CWIST_JOB_BACKOFF_FIXED: int
    CWIST_JOB_BACKOFF_EXPONENTIAL: int
    CWIST_JOB_BATCH_MAX: int
    CWIST_JOB_ID_SIZE: int
    CWIST_JOB_LOG_WARNING: int
    CWIST_JOB_LOG_INFO: int
    CWIST_PY_PENDING: int
    CWIST_PY_SETTLED: int
    CWIST_PY_NO_MEMORY: int
    CWIST_PY_LOGGED: int
    CWIST_PY_SMALL: int
    CWIST_PY_DUPLICATE: int
    CWIST_PY_ACK: int
    CWIST_PY_NACK: int
    CWIST_PY_RELEASE: int

    def cwist_job_version(self) -> Text: ...
    def cwist_job_live_handles(self) -> int: ...
    def cwist_job_error_name(self, code: int) -> Text: ...
    def cwist_job_last_error(self) -> Text: ...
    def cwist_job_conn_close(self, conn: ConnHandle) -> None: ...
    def cwist_job_queue_destroy(self, queue: QueueHandle) -> None: ...
    def cwist_job_queue_ext_opts_init(self, ext: Further) -> None: ...
    def cwist_job_dead_page_count(self, page: Page) -> int: ...
    def cwist_job_dead_page_at(self, page: Page, index: int) -> Letter: ...
    def cwist_job_dead_page_mark(self, page: Page) -> Text: ...
    def cwist_job_dead_page_free(self, page: Page) -> None: ...
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
        ext: Further,
    ) -> int: ...
    def cwist_py_enqueue(
        self,
        queue: QueueHandle,
        payload: bytes | Buffer,
        size: int,
        kind: bytes | Null,
        out: TextBuffer,
    ) -> int: ...
    def cwist_py_enqueue_item(
        self,
        queue: QueueHandle,
        stored: Stored,
        payload: Buffer,
        size: int,
        kind: bytes | Null,
        delay_ms: int,
        key: bytes | Null,
        headers: bytes,
        header_count: int,
    ) -> int: ...
    def cwist_py_interrupt(self, queue: QueueHandle) -> int: ...
    def cwist_py_enqueue_joined(
        self,
        queue: QueueHandle,
        items: ItemArray,
        stored: StoredArray,
        count: int,
        payloads: bytes,
        sizes: Numbers,
        kind: bytes | Null,
        whole: bool,
    ) -> int: ...
    def cwist_py_enqueue_apart(
        self,
        queue: QueueHandle,
        items: ItemArray,
        stored: StoredArray,
        count: int,
        payloads: Pointers,
        sizes: Numbers,
        kinds: Pointers,
        whole: bool,
        delays_ms: Numbers | Null,
        keys: Pointers,
        headers: bytes,
        header_counts: Numbers,
        room: HeaderArray,
    ) -> int: ...
    def cwist_py_claim(
        self, batch: Batch, queue: QueueHandle, most: int, timeout_ms: int, slice_ms: int
    ) -> int: ...
    def cwist_py_claim_wait(self, batch: Batch, slice_ms: int) -> int: ...
    def cwist_py_claim_undo(self, batch: Batch, queue: QueueHandle) -> None: ...
    def cwist_py_payload(self, batch: Batch, index: int) -> Memory: ...
    def cwist_py_described(self, batch: Batch) -> None: ...
    def cwist_py_drop(self, batch: Batch) -> None: ...
    def cwist_py_headers(self, batch: Batch, index: int, size: Size) -> Text: ...
    def cwist_py_ack(self, batch: Batch, index: int, queue: QueueHandle) -> int: ...
    def cwist_py_nack(
        self,
        batch: Batch,
        index: int,
        queue: QueueHandle,
        reason: bytes | Null,
        dead: bool,
        delayed: bool,
        delay_ms: int,
    ) -> int: ...
    def cwist_py_release(
        self, batch: Batch, index: int, queue: QueueHandle, delay_ms: int
    ) -> int: ...
    def cwist_py_settle_many(
        self,
        batches: Pointers,
        indices: Numbers,
        count: int,
        queue: QueueHandle,
        end: int,
        codes: Numbers,
    ) -> int: ...
    def cwist_py_ack_and_claim(
        self,
        claimed: Batch,
        queue: QueueHandle,
        most: int,
        batches: Pointers,
        indices: Numbers,
        count: int,
        codes: Numbers,
    ) -> int: ...
    def cwist_py_extend(self, batch: Batch, index: int, queue: QueueHandle) -> int: ...
    def cwist_py_renew(self, batch: Batch, index: int, queue: QueueHandle) -> int: ...
    def cwist_py_is_settled(self, batch: Batch, index: int) -> bool: ...
    def cwist_py_lease_lost(self, batch: Batch, index: int) -> bool: ...
    def cwist_py_lease_ms(self, batch: Batch, index: int) -> int: ...
    def cwist_py_dead_count(self, queue: QueueHandle, out: Number) -> int: ...
    def cwist_py_dead_list(
        self,
        queue: QueueHandle,
        page: PageOut,
        most: int,
        oldest_first: bool,
        kind: bytes | Null,
        after: bytes | Null,
    ) -> int: ...
    def cwist_py_dead_read(self, queue: QueueHandle, page: PageOut, job_id: bytes) -> int: ...
    def cwist_py_dead_requeue(self, queue: QueueHandle, job_id: bytes) -> int: ...
    def cwist_py_dead_requeue_all(
        self, queue: QueueHandle, kind: bytes | Null, count: Number
    ) -> int: ...
    def cwist_py_dead_purge(self, queue: QueueHandle, job_id: bytes) -> int: ...
    def cwist_py_dead_purge_all(
        self, queue: QueueHandle, kind: bytes | Null, older_than_ms: int, count: Number
    ) -> int: ...
    def cwist_py_stats(self, queue: QueueHandle, stats: StatsOut) -> int: ...
    def cwist_py_purge(self, queue: QueueHandle, count: Number) -> int: ...
    def cwist_py_pause(self, queue: QueueHandle, paused: bool) -> int: ...
    def cwist_py_log_waiting(self) -> bool: ...
    def cwist_py_log_take(self, text: TextBuffer, size: int) -> int: ...
    def cwist_py_log_after_fork(self) -> None: ...

ffi: _Ffi
lib: _Lib
