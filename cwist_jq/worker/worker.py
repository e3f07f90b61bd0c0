"""The worker: claims jobs and runs handlers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import overload

import cwist_jq.connection
from cwist_jq import options
from cwist_jq.connection import Connection
from cwist_jq.errors import Closed, InvalidParam, InvalidType
from cwist_jq.queue import Queue
from cwist_jq.worker import log
from cwist_jq.worker.middleware import Hooks, Middleware
from cwist_jq.worker.order import Strict, Weighted
from cwist_jq.worker.registry import Registry
from cwist_jq.worker.session import NOW, STOP, Session
from cwist_jq.worker.signals import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar, Union

    from cwist_jq.options import Duration
    from cwist_jq.worker.order import Order

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    Named = Union[str, Queue]

__all__ = ["Worker"]

CONCURRENCY = 8
SHUTDOWN_TIMEOUT = 25.0
MOST_AT_ONCE = 10_000
MOST_PROCESSES = 1000


class Worker:
    """Takes jobs from queues and runs handlers.

    Example:
        worker = Worker("redis://127.0.0.1:6379", "emails", concurrency=8)

        @worker.handler("welcome")
        def welcome(data):
            send(data["to"])

        if __name__ == "__main__":
            worker.run()

    Handlers that are coroutines run on one event loop; others in threads, or in child processes.
    Leases are renewed for as long as a handler runs. Delivery is at-least-once: a handler must bear
    to see a job twice.
    """

    def __init__(  # noqa: PLR0913 (they are named)
        self,
        conn: Connection | str | None,
        queues: Named | Iterable[Named] | Mapping[Named, int],
        *,
        concurrency: int = CONCURRENCY,
        processes: int = 0,
        shutdown_timeout: Duration = SHUTDOWN_TIMEOUT,
        middleware: Iterable[Middleware] = (),
        queue_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Nothing is opened or started before run().

        Args:
            conn: A connection; or a URL, which run() connects to; or None, which takes the URL from
                CWIST_JQ_URL. With processes, a module that is imported by the children should have
                no connection.
            queues: Names of queues, or Queue objects; one, or several. Of several the first that
                has jobs is served. A mapping gives each a weight instead, 1 to 1000, and jobs are
                taken as the weights are.
            concurrency: How many handlers run at once: 1 to 10000.
            processes: How many child processes run the handlers that are no coroutines, 0 to 1000;
                0 runs them in threads. A child runs one job at a time, beside those on the loop.
            shutdown_timeout: How long handlers that run may go on after stop(): 0 to 86400 seconds,
                or a timedelta.
            middleware: What runs around each handler, the first outermost.
            queue_options: Options of Connection.queue() for the queues that are given by name. They
                have auto_renew=True.

        Raises:
            InvalidParam, InvalidType: An argument is wrong.
        """
        if conn is not None and not isinstance(conn, (Connection, str)):
            raise InvalidType(f"conn is a {type(conn).__name__}; allowed: a Connection or a URL")
        self._conn = conn
        self._queues, self._weights = _named(queues)
        self._concurrency = options.count("concurrency", concurrency, 1, MOST_AT_ONCE)
        self._processes = options.count("processes", processes, 0, MOST_PROCESSES)
        ms = options.milliseconds("shutdown_timeout", shutdown_timeout, 0, options.DAY_MS)
        self._shutdown_timeout = ms / 1000
        self._hooks = Hooks(_checked(middleware))
        self._queue_options = {"auto_renew": True, **(queue_options or {})}
        self._registry = Registry()
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._stopped: str | None = None  # stop() was called before run()
        self._signals: list[int] = []

    @overload
    def handler(self, function: _Function, /) -> _Function: ...
    @overload
    def handler(self, *types: str) -> Callable[[_Function], _Function]: ...
    def handler(self, *types: Any) -> Any:
        """Registers a function for jobs of these types, or for all that nobody else does.

        The function gets the data of the job, and the job itself when it has a second parameter
        without a default. The data is what the payload's JSON says; with an annotation, a model of
        msgspec or pydantic; the payload itself when the annotation is bytes. A function whose only
        parameter is annotated as Job gets just that. In a child process the job is a RemoteJob.

        What it raises decides: Retry, Reject and Snooze as they say; anything else is a retry after
        the queue's retry delay. A type that has no handler is a failure of the job, too.

        Example:
            @worker.handler("welcome", "goodbye")
            async def mail(data, job): ...

        Args:
            types: Texts. Used without a call, as in @worker.handler, it is for all other types.

        Returns:
            The decorator; it leaves the function as it is.

        Raises:
            InvalidParam, InvalidType: The type has a handler, or the function wants something else.
        """
        if len(types) == 1 and callable(types[0]):
            self._registry.add(types[0], ())
            return types[0]

        def register(function: _Function) -> _Function:
            self._registry.add(function, types)
            return function

        return register

    def run(self) -> None:
        """Works until stop(), SIGTERM or Ctrl-C.

        In the main thread it handles both signals. The first one, like stop(), claims nothing more,
        lets the handlers that run end within the shutdown timeout, hands back all other jobs
        without spending an attempt, and returns. A handler in a thread that is still running then
        ends with the process; on the loop it is cancelled, in a child process it is killed. The
        second signal does not wait.

        Raises:
            Closed: The connection or a queue is closed, or the worker runs already.
            ConnectionFailed, Denied: The server cannot be reached at the start; later it is waited
                for.
            InvalidParam: There is no handler, an option of a queue is wrong, or a handler cannot
                run in a child process.
            SystemExit: After a second signal, with the code 128 and its number.
        """
        with self._lock:
            if self._session is not None:
                raise Closed("the worker runs already")
            if not self._registry.all():
                raise InvalidParam("there is no handler; register one with Worker.handler()")
        self._signals.clear()
        with Signals(self._signalled):
            self._run()
        if len(self._signals) > 1:
            raise SystemExit(128 + self._signals[1])

    def _run(self) -> None:
        conn = self._conn
        made = None if isinstance(conn, Connection) else cwist_jq.connection.connect(conn)
        opened: list[Queue] = []
        try:
            queues = []
            for queue in self._queues:
                if isinstance(queue, Queue):
                    queues.append((queue, True))
                    continue
                one = (made or conn).queue(queue, **self._queue_options)  # type: ignore[union-attr]
                opened.append(one)
                queues.append((one, not self._queue_options["auto_renew"]))
            self._work(
                Session(
                    queues,
                    self._order(),
                    self._registry,
                    self._hooks,
                    self._concurrency,
                    self._processes,
                )
            )
        finally:
            for queue in opened:
                queue.close()
            if made is not None:
                made.close()

    def _order(self) -> Order:
        return Strict(len(self._queues)) if self._weights is None else Weighted(self._weights)

    def _work(self, session: Session) -> None:
        names = ", ".join(one if isinstance(one, str) else one.name for one in self._queues)
        with self._lock:
            self._session = session
            if self._stopped is not None:
                session.tell(self._stopped)
        for number in range(len(self._signals)):
            session.tell(NOW if number else STOP)
        log.LOGGER.info("works on %s, %d at once", names, self._processes or self._concurrency)
        try:
            session.run(self._shutdown_timeout)
        finally:
            with self._lock:
                self._session = None
                self._stopped = None
            log.LOGGER.info("has stopped working on %s", names)

    def stop(self, *, now: bool = False) -> None:
        """Makes run() end as a signal does; returns at once. Any thread may call it.

        Called before run(), it makes run() end when it has begun.

        Args:
            now: Do not wait for handlers that run, as after a second signal.
        """
        word = NOW if now else STOP
        with self._lock:
            self._stopped = word
            if self._session is not None:
                self._session.tell(word)

    def _signalled(self, number: int) -> None:
        """A signal came. No lock is taken: this may have interrupted who has it."""
        self._signals.append(number)
        session = self._session
        if session is not None:
            session.tell(STOP if len(self._signals) == 1 else NOW)

    def __repr__(self) -> str:
        """The queues and the state."""
        names = ", ".join(one if isinstance(one, str) else one.name for one in self._queues)
        state = "idle" if self._session is None else "running"
        return f"<cwist_jq.worker.Worker {names} {state}>"


def _named(
    queues: Named | Iterable[Named] | Mapping[Named, int],
) -> tuple[list[Named], list[int] | None]:
    """The queues, and their weights if they have some."""
    weights = None
    if isinstance(queues, (str, Queue)):
        found = [queues]
    elif isinstance(queues, Mapping):
        found = list(queues)
        weights = [options.count("weight", weight, 1, 1000) for weight in queues.values()]
    else:
        found = list(queues)
    if not found:
        raise InvalidParam("queues is empty; allowed: one queue or more")
    names = []
    for one in found:
        if not isinstance(one, (str, Queue)):
            raise InvalidType(f"a queue is a {type(one).__name__}; allowed: a name or a Queue")
        names.append(one if isinstance(one, str) else one.name)
    if len(set(names)) < len(names):
        raise InvalidParam("queues has one twice; allowed: each once")
    return found, weights


def _checked(middleware: Iterable[Middleware]) -> list[Middleware]:
    chain = list(middleware)
    for one in chain:
        if not isinstance(one, Middleware):
            raise InvalidType(f"middleware has a {type(one).__name__}; allowed: a Middleware")
    return chain
