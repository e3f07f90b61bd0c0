"""Queues: enqueue and claim."""

from __future__ import annotations

from cwist_jq import _lib, options
from cwist_jq.errors import Closed
from cwist_jq.job import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Buffer, Self

    from cwist_jq._native import ConnHandle, QueueHandle
    from cwist_jq.connection import Connection
    from cwist_jq.options import Duration

    Payload = Buffer

__all__ = ["Queue"]

VISIBILITY_TIMEOUT = 30.0
MAX_RETRIES = 5
RETRY_DELAY = 0.0


class Queue:
    """A durable queue of jobs. Made by Connection.queue(). Any thread may use it.

    Delivery is at-least-once: a handler must bear to see a job twice.
    """

    __slots__ = ("__weakref__", "_connection", "_handle", "_name")

    def __init__(self, connection: Connection, name: str) -> None:
        """Makes a closed queue; Connection.queue() opens it."""
        self._connection = connection
        self._handle: QueueHandle | None = None
        self._name = name

    def _open(self, conn: ConnHandle, settings: tuple[bytes, bytes | None, int, int, int]) -> None:
        self._handle = _lib.open_queue(conn, *settings)

    def _live(self) -> QueueHandle:
        """The handle of an open queue."""
        handle = self._handle
        if handle is None:
            raise Closed(f"the queue {self._name} is closed")
        return handle

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._name

    @property
    def closed(self) -> bool:
        """True after close(), of the queue or of its connection."""
        return self._handle is None

    def enqueue(self, payload: Payload, *, type: str | None = None) -> str:
        """Stores a job.

        Example:
            queue.enqueue(b'{"to": "a@b.co"}', type="welcome")

        Args:
            payload: Any bytes: bytes, bytearray, memoryview or another contiguous buffer. A str is
                refused: encode it.
            type: A tag for the handler: up to 255 bytes of UTF-8 without control characters. None
                and "" mean none.

        Returns:
            The id of the job.

        Raises:
            InvalidParam: The payload is no contiguous buffer, or the type breaks its rule.
            TooLarge: The payload is over the limit of the engine. Nothing was sent.
            ConnectionFailed: No server within the operation timeout. Nothing was stored.
            OutcomeUnknown: The answer was lost: the job is stored, or not.
            Refused: The server cannot store now: out of memory, read-only, loading.
            Denied: The right to do this is missing.
            Closed: The queue is closed.
        """
        kind = None if type is None or type == "" else options.text("type", type)
        return _lib.enqueue(self._live(), payload, kind)

    def claim(self, timeout: Duration | None = None) -> Job | None:
        """Claims the next job.

        Ctrl-C ends the wait within half a second. A job that arrives meanwhile is handed back.

        Example:
            job = queue.claim(timeout=5.0)
            if job is not None:
                with job:
                    handle(job.payload)

        Args:
            timeout: How long to wait for a job: seconds from 0 up, or a timedelta. 0 looks once;
                None waits for ever.

        Returns:
            The job, or None when none came in time.

        Raises:
            ConnectionFailed: The server could not be reached until the end of the timeout.
            Interrupted: interrupt() was called.
            Closed: The queue is closed, or was closed meanwhile.
            InvalidParam: The timeout is out of its range.
        """
        timeout_ms = options.timeout(timeout)
        handle = self._live()
        delivery = _lib.new_delivery()
        # A signal may raise anywhere in here, also right behind the call that brought the job.
        try:
            if not _lib.claim(delivery, handle, timeout_ms):
                return None
            return Job(self, delivery, *_lib.describe(delivery))
        except BaseException:
            _lib.abandon(delivery, handle)
            raise

    def __iter__(self) -> Iterator[Job]:
        """Yields jobs for ever; one is claimed only when the loop asks for it.

        Example:
            for job in queue:
                with job:
                    handle(job.payload)
        """
        while True:
            job = self.claim()
            if job is not None:
                yield job

    def dead_count(self) -> int:
        """Counts the dead letters of the queue.

        Raises:
            ConnectionFailed: No server within the operation timeout.
            Closed: The queue is closed.
        """
        return _lib.dead_count(self._live())

    def interrupt(self) -> None:
        """Wakes the claims of this queue object that are blocked now: they raise Interrupted.

        Raises:
            Closed: The queue is closed.
        """
        _lib.interrupt(self._live())

    def close(self) -> None:
        """Closes the queue; its blocked claims raise Closed. Closing again does nothing.

        Jobs that are still claimed come back to other workers after the visibility timeout.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            _lib.close_queue(handle)

    def __enter__(self) -> Self:
        """Returns the queue, which must be open."""
        self._live()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the queue."""
        self.close()

    def __del__(self) -> None:
        """Closes a queue that nobody closed; the connection is what has to be closed."""
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __repr__(self) -> str:
        """The name and the state."""
        state = "closed" if self._handle is None else "open"
        return f"<cwist_jq.Queue {self._name!r} {state}>"
