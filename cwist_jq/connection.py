"""Connections to a server that keeps queues."""

from __future__ import annotations

import os
import warnings
import weakref

from cwist_jq import _lib, options
from cwist_jq.errors import Closed, InvalidParam
from cwist_jq.queue import MAX_RETRIES, RETRY_DELAY, VISIBILITY_TIMEOUT, Queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from cwist_jq._native import ConnHandle
    from cwist_jq.options import Backoff, Duration

__all__ = ["URL_VARIABLE", "Connection", "connect"]

URL_VARIABLE = "CWIST_JQ_URL"
CONNECT_TIMEOUT = 2.0
OPERATION_TIMEOUT = 5.0
RETRY_DELAY_MAX = 3600.0


def connect(
    url: str | None = None,
    *,
    connect_timeout: Duration = CONNECT_TIMEOUT,
    operation_timeout: Duration = OPERATION_TIMEOUT,
) -> Connection:
    """Connects to a Redis server, to a NATS server with JetStream, or to a store in memory.

    Example:
        with cwist_jq.connect("redis://127.0.0.1:6379") as conn:
            queue = conn.queue("emails")
            queue.enqueue(b"hello")

    Args:
        url: redis://[user:password@]host[:port][/db], rediss://..., unix:///path[?db=N],
            nats://[user:password@]host:port[,host:port] or tls://...; a password may be
            percent-encoded. rediss and tls are encrypted, and the certificate and its host name are
            checked; ?tls_ca=FILE&tls_cert=FILE&tls_key=FILE&tls_verify=no may follow, each for
            itself (docs/tls.md). memory://[name] is a store of this process alone, for tests
            (docs/testing.md). None takes it from the environment variable CWIST_JQ_URL.
        connect_timeout: The time for one attempt to connect: 0.001 to 86400 seconds, or a
            timedelta.
        operation_timeout: The time for one call other than claim(), in the same range. Meanwhile a
            server that cannot be reached is tried again.

    Returns:
        The connection. Close it, or use it in a with statement.

    Raises:
        InvalidParam: The URL or a timeout is wrong, there is no URL, or a file that it names cannot
            be used.
        ConnectionFailed: No server answered within the operation timeout.
        ProtocolError: What answered is no server of that kind, or does not encrypt.
        Denied: The server refused the credentials, or one side the other's certificate.
        Unsupported: The engine or TLS is not in this build, the server is too old, or JetStream is
            off.
    """
    if url is None:
        url = os.environ.get(URL_VARIABLE)
        if not url:
            raise InvalidParam(f"url is missing: pass one, or set {URL_VARIABLE}")
    place = options.text("url", url)
    connect_ms = options.milliseconds("connect_timeout", connect_timeout, 1, options.DAY_MS)
    operation_ms = options.milliseconds("operation_timeout", operation_timeout, 1, options.DAY_MS)
    connection = Connection(url.partition(":")[0])
    connection._open(place, connect_ms, operation_ms)  # noqa: SLF001 (its only maker)
    return connection


class Connection:
    """A connection to one server. Made by connect(). Any thread may use it."""

    __slots__ = ("__weakref__", "_handle", "_queues", "_scheme")

    def __init__(self, scheme: str) -> None:
        """Makes a closed connection; connect() opens it."""
        self._handle: ConnHandle | None = None
        self._queues: weakref.WeakValueDictionary[int, Queue] = weakref.WeakValueDictionary()
        self._scheme = scheme

    def _open(self, url: bytes, connect_ms: int, operation_ms: int) -> None:
        self._handle = _lib.connect(url, connect_ms, operation_ms)

    def queue(  # noqa: PLR0913 (one for each option)
        self,
        name: str,
        *,
        consumer: str | None = None,
        visibility_timeout: Duration = VISIBILITY_TIMEOUT,
        max_retries: int = MAX_RETRIES,
        retry_delay: Duration = RETRY_DELAY,
        retry_backoff: Backoff = "fixed",
        retry_delay_max: Duration = RETRY_DELAY_MAX,
        retry_jitter: float = 0.0,
        max_length: int | None = None,
        auto_renew: bool = False,
    ) -> Queue:
        """Opens a queue; what it needs on the server is made on first use.

        Args:
            name: 1 to 128 of A-Z a-z 0-9 _ - . : and not ending in _DEAD.
            consumer: A label of this worker, 1 to 128 printable ASCII characters without space.
                None makes a unique one.
            visibility_timeout: How long a claimed job is kept from other workers: 0.01 to 604800
                seconds (7 days), or a timedelta. It is kept on the server; a claim with another
                value changes it for all workers of the queue.
            max_retries: How often a job is delivered, the first time included, before it becomes a
                dead letter: 1 to 1000000.
            retry_delay: How long a nacked job waits: 0 to 31536000 seconds (365 days), or a
                timedelta.
            retry_backoff: "fixed": always so long. "exponential": so long after the first attempt,
                twice as long after each further one.
            retry_delay_max: The cap of a growing delay: retry_delay to 31536000 seconds. A
                retry_delay above an hour raises the default to itself.
            retry_jitter: Up to this share of each delay is taken off at random, so that jobs that
                failed together do not come back together: 0 to 1, in steps of a hundredth.
            max_length: Refuse an enqueue with QueueFull when so many jobs are ready, delayed or
                claimed: 1 to 1000000000. None: no limit. On NATS it is also a setting of the
                stream, made by the first enqueue, and then the queue takes no delayed jobs.
            auto_renew: Keep the lease of every claimed job, as Job.renew() does.

        Returns:
            The queue. It is closed with the connection, or earlier by its own close().

        Raises:
            InvalidParam: An argument is out of its range.
            Closed: The connection is closed.
            ConnectionFailed: The server cannot be reached.
        """
        delay_ms = options.milliseconds("retry_delay", retry_delay, 0, options.DELAY_MAX_MS)
        settings = (
            options.text("name", name),
            None if consumer is None else options.text("consumer", consumer),
            options.milliseconds("visibility_timeout", visibility_timeout, 10, 7 * options.DAY_MS),
            options.count("max_retries", max_retries, 1, 1_000_000),
            delay_ms,
            {
                "retry_backoff": options.one_of("retry_backoff", retry_backoff, _lib.BACKOFFS),
                "retry_delay_max_ms": 0  # the default is C's to choose
                if retry_delay_max is RETRY_DELAY_MAX
                else options.milliseconds(
                    "retry_delay_max", retry_delay_max, max(1, delay_ms), options.DELAY_MAX_MS
                ),
                "retry_jitter_percent": options.percent("retry_jitter", retry_jitter),
                "max_length": 0
                if max_length is None
                else options.count("max_length", max_length, 1, 1_000_000_000),
                "auto_renew": options.flag("auto_renew", auto_renew),
            },
        )
        handle = self._handle
        if handle is None:
            raise Closed("the connection is closed")
        queue = Queue(self, name)
        queue._open(handle, settings)  # noqa: SLF001 (its only maker)
        self._queues[id(queue)] = queue
        if self._handle is None:  # closed meanwhile by another thread
            queue.close()
        return queue

    @property
    def closed(self) -> bool:
        """True after close()."""
        return self._handle is None

    def close(self) -> None:
        """Closes the connection and its queues; their blocked claims raise Closed.

        Closing again does nothing. Jobs that are still claimed come back to other workers after the
        visibility timeout.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            for reference in self._queues.valuerefs():
                queue = reference()
                if queue is not None:
                    queue.close()
            _lib.close_connection(handle)

    def __enter__(self) -> Self:
        """Returns the connection, which must be open."""
        if self._handle is None:
            raise Closed("the connection is closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the connection."""
        self.close()

    def __del__(self, _warn: object = warnings.warn) -> None:
        """Closes a connection that nobody closed, with a warning."""
        if getattr(self, "_handle", None) is not None and callable(_warn):
            try:
                _warn(f"unclosed {self!r}", ResourceWarning, source=self)
            finally:
                self.close()

    def __repr__(self) -> str:
        """The kind of server and the state; no part of the URL that could hold a password."""
        state = "closed" if self._handle is None else "open"
        return f"<cwist_jq.Connection {self._scheme} {state}>"
