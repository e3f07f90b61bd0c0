"""Connections to a server that keeps queues."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING

import cwist_jq
from cwist_jq.aio.closing import Closing
from cwist_jq.aio.forks import forks
from cwist_jq.aio.opening import Opening
from cwist_jq.aio.queue import Queue
from cwist_jq.aio.threads import Threads
from cwist_jq.connection import CONNECT_TIMEOUT, OPERATION_TIMEOUT, RETRY_DELAY_MAX
from cwist_jq.errors import Closed
from cwist_jq.queue import MAX_RETRIES, RETRY_DELAY, VISIBILITY_TIMEOUT

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from cwist_jq.options import Backoff, Duration

__all__ = ["Connection", "connect"]


def connect(
    url: str | None = None,
    *,
    connect_timeout: Duration = CONNECT_TIMEOUT,
    operation_timeout: Duration = OPERATION_TIMEOUT,
) -> Opening[Connection]:
    """Connects to a Redis server, or to a NATS server with JetStream.

    Example:
        async with cwist_jq.aio.connect("redis://127.0.0.1:6379") as conn:
            async with conn.queue("emails") as queue:
                await queue.enqueue(b"hello")

    Args:
        url: As for cwist_jq.connect(). None takes it from the environment variable CWIST_JQ_URL.
        connect_timeout: The time for one attempt to connect.
        operation_timeout: The time for one call to the server, other than a claim.

    Returns:
        What connects when it is awaited, or entered with `async with`, which closes the connection
        at the end.

    Raises:
        Error: As of cwist_jq.connect(), when it is awaited or entered.
    """
    return Opening(
        partial(_connect, url, connect_timeout=connect_timeout, operation_timeout=operation_timeout)
    )


async def _connect(url: str | None, **timeouts: Any) -> Connection:
    threads = Threads("cwist_jq")
    made = await threads.run(
        partial(cwist_jq.connect, url, **timeouts), undo=cwist_jq.Connection.close
    )
    return Connection(made, threads)


class Connection:
    """A connection to one server. Made by connect(). Tasks of any loop may use it.

    It has a few threads for the calls that block, and each queue one more while tasks wait in a
    claim. They end by themselves when they are not needed.
    """

    __slots__ = (
        "__weakref__",
        "_closing",
        "_connection",
        "_forks",
        "_lock",
        "_queues",
        "_threads",
    )

    def __init__(self, connection: cwist_jq.Connection, threads: Threads) -> None:
        """Made by connect()."""
        self._connection = connection
        self._threads = threads
        self._forks = forks()
        self._closing = Closing()
        self._lock = threading.Lock()
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()

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
    ) -> Opening[Queue]:
        """Opens a queue; what it needs on the server is made on first use.

        Example:
            queue = await conn.queue("emails", visibility_timeout=60)

        The options are those of cwist_jq.Connection.queue().

        Returns:
            What opens the queue when it is awaited, or entered with `async with`, which closes it
            at the end. The queue is closed with the connection at the latest.

        Raises:
            InvalidParam, Closed, ConnectionFailed: As of cwist_jq.Connection.queue(), when it is
                awaited or entered.
        """
        settings = {
            "consumer": consumer,
            "visibility_timeout": visibility_timeout,
            "max_retries": max_retries,
            "retry_delay": retry_delay,
            "retry_backoff": retry_backoff,
            "retry_delay_max": retry_delay_max,
            "retry_jitter": retry_jitter,
            "max_length": max_length,
            "auto_renew": auto_renew,
        }
        return Opening(partial(self._open, name, settings))

    async def _open(self, name: str, settings: dict[str, Any]) -> Queue:
        self._check()
        opened = await self._threads.run(
            partial(self._connection.queue, name, **settings), undo=cwist_jq.Queue.close
        )
        queue = Queue(self, opened)
        with self._lock:
            self._queues.add(queue)
        if self._closing.begun:  # meanwhile: it may have been too late for the list
            await queue.close()
        return queue

    def _check(self) -> None:
        """Raises unless the connection is open, and in this process."""
        if forks() != self._forks:
            raise Closed("the connection was opened in another process; open it again")
        if self._closing.begun:
            raise Closed("the connection is closed")

    @property
    def closed(self) -> bool:
        """True from close() on."""
        return self._closing.begun or self._connection.closed

    async def close(self) -> None:
        """Closes the connection and its queues, each as Queue.close() does.

        Closing again waits for the end, and else does nothing.
        """
        if forks() != self._forks:
            self._connection.close()
        elif self._closing.begin():
            with self._lock:
                queues = list(self._queues)
            mine = [queue for queue in queues if queue._begin_closing()]  # noqa: SLF001
            self._closing.start(partial(self._close, queues, mine))
        await self._closing.wait()

    def _close(self, queues: list[Queue], mine: list[Queue]) -> None:
        for queue in mine:
            queue._closing.run(queue._close)  # noqa: SLF001 (one package)
        for queue in queues:
            queue._closing.join()  # noqa: SLF001 (one package)
        self._connection.close()
        self._threads.close()

    async def __aenter__(self) -> Self:
        """Returns the connection, which must be open."""
        self._check()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the connection."""
        await self.close()

    def __repr__(self) -> str:
        """The kind of server and the state; no part of the URL that could hold a password."""
        state = "closed" if self.closed else "open"
        return f"<cwist_jq.aio.Connection {self._connection._scheme} {state}>"  # noqa: SLF001
