"""Queues: enqueue and claim."""

from __future__ import annotations

from cwist_jq import _lib, _lib_upkeep, batch, options
from cwist_jq.errors import Closed
from cwist_jq.item import NOW, extras_of
from cwist_jq.job import job_of, jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Union

    from typing_extensions import Self

    from cwist_jq._native import ConnHandle, QueueHandle
    from cwist_jq.connection import Connection
    from cwist_jq.dead import DeadLetters
    from cwist_jq.item import Item, Payload
    from cwist_jq.job import Job
    from cwist_jq.options import Duration
    from cwist_jq.stats import Stats

    Settings = tuple[bytes, Union[bytes, None], int, int, int, dict[str, int]]

__all__ = ["Queue"]

VISIBILITY_TIMEOUT = 30.0
MAX_RETRIES = 5
RETRY_DELAY = 0.0


class Queue:
    """A durable queue of jobs. Made by Connection.queue(). Any thread may use it.

    Delivery is at-least-once: a handler must bear to see a job twice.
    """

    __slots__ = ("__weakref__", "_connection", "_handle", "_max_retries", "_name")

    def __init__(self, connection: Connection, name: str) -> None:
        """Makes a closed queue; Connection.queue() opens it."""
        self._connection = connection
        self._handle: QueueHandle | None = None
        self._name = name
        self._max_retries = MAX_RETRIES

    def _open(self, conn: ConnHandle, settings: Settings) -> None:
        self._handle = _lib.open_queue(conn, *settings)
        self._max_retries = settings[3]

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
    def max_retries(self) -> int:
        """How often a job is delivered, the first time included, before it is a dead letter."""
        return self._max_retries

    @property
    def closed(self) -> bool:
        """True after close(), of the queue or of its connection."""
        return self._handle is None

    def enqueue(
        self,
        payload: Payload,
        *,
        type: str | None = None,
        delay: Duration = NOW,
        dedupe_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Stores a job.

        Example:
            queue.enqueue(b'{"to": "a@b.co"}', type="welcome")

        Args:
            payload: Any bytes: bytes, bytearray, memoryview or another contiguous buffer. A str is
                refused: encode it.
            type: A tag for the handler: up to 255 bytes of UTF-8 without control characters. None
                and "" mean none.
            delay: How long the job waits on the server before it can be claimed, by the server's
                clock: 0 to 31536000 seconds (365 days), or a timedelta.
            dedupe_key: At most one job with this key lives: 1 to 255 bytes of UTF-8 without control
                characters. The key is free again when the job is acked, dead or purged. Until then
                another enqueue stores nothing and returns the id of the first as a DuplicateId.
            headers: Texts that go to the worker beside the payload, up to 64. A name: 1 to 128 of
                A-Z a-z 0-9 and -, not beginning with Nats- or Cwist-. A value: up to 4096 bytes of
                UTF-8 without control characters, without space at its ends.

        Returns:
            The id of the job.

        Raises:
            InvalidParam: The payload is no contiguous buffer, or an option breaks its rule.
            TooLarge: The payload is over the limit of the engine. Nothing was sent.
            QueueFull: The queue holds max_length jobs.
            Unsupported: A delay on NATS needs server 2.12, and a queue without max_length.
            ConnectionFailed: No server within the operation timeout. Nothing was stored.
            OutcomeUnknown: The answer was lost: the job is stored, or not. Not with a dedupe_key:
                then the command is sent again.
            Refused: The server cannot store now: out of memory, read-only, loading.
            Denied: The right to do this is missing.
            Closed: The queue is closed.
        """
        kind = None if type is None else options.kind(type)
        handle = self._handle or self._live()
        if delay is NOW and dedupe_key is None and headers is None:
            return _lib.enqueue(handle, payload, kind)
        return _lib.enqueue_item(handle, payload, kind, extras_of(delay, dedupe_key, headers))

    def enqueue_many(
        self, payloads: Iterable[Payload | Item], *, type: str | None = None
    ) -> list[str]:
        """Stores jobs in the given order, in pieces of up to 1000, each checked before it is sent.

        This is no transaction: what was stored before something fails stays stored. An exception of
        the iterable itself goes on as it is, and the ids of what was stored before it are lost.

        Example:
            ids = queue.enqueue_many([b"one", b"two", Item(b"three", "urgent")], type="plain")

        Args:
            payloads: Each a payload as for enqueue(), or an Item that has options of its own. Any
                iterable; no more than a piece of it is held.
            type: The type of those that have none of their own.

        Returns:
            The ids of the jobs, that of a duplicate as a DuplicateId.

        Raises:
            InvalidParam, TooLarge: An item is wrong; the text names it. Nothing of its piece was
                stored.
            QueueFull, Unsupported, ConnectionFailed, OutcomeUnknown, Refused, Denied, Closed: As
                for enqueue().

        What is raised has `results`: an id or an exception for each item, NotSent for those behind
        the failure; from an iterator these are not taken, unless they belong to its piece.
        """
        return batch.enqueue_many(self._live(), payloads, type)

    def enqueue_all(
        self, payloads: Iterable[Payload | Item], *, type: str | None = None
    ) -> list[str]:
        """Stores jobs, all or none, in one step of the server.

        Args:
            payloads: As for enqueue_many(), at most 1000.
            type: The type of those that have none of their own.

        Returns:
            The ids of the jobs, that of a duplicate as a DuplicateId.

        Raises:
            Unsupported: The server cannot: NATS needs 2.12.
            InvalidParam: An item is wrong, or there are more than 1000.
            TooLarge: Also for more than the server takes in one step.
            OutcomeUnknown: The answer was lost: all are stored, or none.
            QueueFull: The queue has no room for all of them.
            ConnectionFailed, Refused, Denied, Closed: As for enqueue(). Nothing was stored.
        """
        return batch.enqueue_all(self._live(), payloads, type)

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
        handle = self._handle or self._live()
        claimed = _lib.new_batch()
        # A signal may raise anywhere in here, also right behind the call that brought the job.
        try:
            return job_of(self, claimed) if _lib.claim(claimed, handle, 1, timeout_ms) else None
        except BaseException:
            _lib.abandon(claimed, handle)
            raise

    def claim_many(self, n: int, timeout: Duration | None = None) -> list[Job]:
        """Claims up to n jobs at once: waits for the first, and takes what is ready then.

        All leases begin at once: claim no more than can be handled within the visibility timeout.
        Ctrl-C ends the wait within half a second. Jobs that arrive meanwhile are handed back.

        Example:
            while jobs := queue.claim_many(100, timeout=5.0):
                for job in jobs:
                    handle(job.payload)
                queue.ack_many(jobs)

        Args:
            n: How many at most: 1 to 1000.
            timeout: How long to wait for the first, as for claim().

        Returns:
            The jobs, an empty list when none came in time.

        Raises:
            InvalidParam: n or the timeout is out of its range.
            ConnectionFailed, Interrupted, Closed: As for claim().
        """
        most = options.batch_size("n", n)
        timeout_ms = options.timeout(timeout)
        handle = self._live()
        claimed = _lib.new_batch()
        try:  # as in claim()
            return jobs_of(self, claimed) if _lib.claim(claimed, handle, most, timeout_ms) else []
        except BaseException:
            _lib.abandon(claimed, handle)
            raise

    def ack_many(self, jobs: Iterable[Job]) -> None:
        """Removes jobs for good, in one round trip for each 256. All are settled then.

        Args:
            jobs: Jobs of this queue object.

        Raises:
            LeaseLost: A job was given to another worker.
            Closed: A job was settled before, or is there twice; or the queue is closed.
            InvalidParam: A job of another queue object: it comes back after the visibility timeout.
            InvalidType: Something is no Job; nothing was sent.
            ConnectionFailed, OutcomeUnknown: As for Job.ack().

        What is raised is the first failure, which names the job by its place among all, with
        `results`: None or an exception for each job.
        """
        batch.settle_many(self._live(), jobs, _lib.ack_many)

    def nack_many(self, jobs: Iterable[Job]) -> None:
        """Hands jobs back for a retry, each as Job.nack() does. Otherwise as ack_many().

        Jobs that had their last delivery become dead letters, in round trips of their own.
        """
        batch.settle_many(self._live(), jobs, _lib.nack_many)

    def release_many(self, jobs: Iterable[Job]) -> None:
        """Hands jobs back at once, each as Job.release() does. Otherwise as ack_many()."""
        batch.settle_many(self._live(), jobs, _lib.release_many)

    def ack_and_claim(
        self, jobs: Iterable[Job], n: int, timeout: Duration | None = None
    ) -> list[Job]:
        """Acks jobs and claims the next ones, in the same round trip when some are ready.

        For a worker that has nothing else to do between the two.

        Example:
            jobs = queue.claim_many(100)
            while True:
                for job in jobs:
                    handle(job.payload)
                jobs = queue.ack_and_claim(jobs, 100)

        Args:
            jobs: What is done, as for ack_many(); may be empty.
            n: How many to claim at most: 1 to 1000.
            timeout: How long to wait for the first, as for claim().

        Returns:
            The claimed jobs, an empty list when none came in time.

        Raises:
            LeaseLost, Closed, InvalidParam, InvalidType, ConnectionFailed, OutcomeUnknown: As for
                ack_many() and claim_many(). When acks failed, nothing more is waited for.

        What is raised has `results`, as for ack_many(), and `claimed`: jobs that came although acks
        failed. They are yours; nobody else has them until their leases end.
        """
        most = options.batch_size("n", n)
        return batch.ack_and_claim(self, self._live(), jobs, most, options.timeout(timeout))

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

    @property
    def dead(self) -> DeadLetters:
        """The dead letters of the queue: to list, read, requeue and purge."""
        from cwist_jq.dead import DeadLetters  # late: the import of the package stays light

        return DeadLetters(self)

    def dead_count(self) -> int:
        """Counts the dead letters of the queue.

        Raises:
            ConnectionFailed: No server within the operation timeout.
            Closed: The queue is closed.
        """
        return _lib_upkeep.dead_count(self._live())

    def stats(self) -> Stats:
        """Counts what the queue holds; and tells what this queue object did since it was opened.

        Example:
            print(f"{queue.stats().ready} jobs wait")

        Raises:
            ConnectionFailed, Denied, Closed: As for enqueue().
        """
        from cwist_jq.stats import stats_of  # late, as dead

        return stats_of(self._live())

    def purge(self) -> int:
        """Deletes for good the jobs that are ready or delayed now; claimed and dead ones stay.

        Their dedupe keys are free then.

        Returns:
            How many were deleted.

        Raises:
            ConnectionFailed, OutcomeUnknown, Denied, Closed: As for enqueue(). `done` of the
                exception says how many were deleted before.
        """
        return _lib_upkeep.purge(self._live())

    def pause(self) -> None:
        """Stops all claims of the queue, by anyone, until resume(): they wait on.

        It holds everywhere within a second, and is kept on the server. Claimed jobs are not
        touched, and enqueue goes on.

        Raises:
            Unsupported: On NATS it needs server 2.11.
            ConnectionFailed, Denied, Closed: As for enqueue().
        """
        _lib_upkeep.pause(self._live(), paused=True)

    def resume(self) -> None:
        """Lets claims go on.

        Raises:
            Unsupported, ConnectionFailed, Denied, Closed: As for pause().
        """
        _lib_upkeep.pause(self._live(), paused=False)

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
