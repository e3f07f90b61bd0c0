"""Queues: enqueue and claim."""

from __future__ import annotations

import threading
import time
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING

import cwist_jq
from cwist_jq import _lib, options
from cwist_jq.aio.claims import Claims
from cwist_jq.aio.closing import Closing
from cwist_jq.aio.dead import DeadLetters
from cwist_jq.aio.forks import forks
from cwist_jq.aio.gather import Gatherer
from cwist_jq.aio.job import Job
from cwist_jq.aio.many import enqueue_many
from cwist_jq.aio.sending import settle, size, store
from cwist_jq.errors import Closed, Error, Interrupted, InvalidType
from cwist_jq.item import NOW, Item, extras_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar, Union

    from typing_extensions import Self

    from cwist_jq.aio.connection import Connection
    from cwist_jq.item import Payload
    from cwist_jq.options import Duration
    from cwist_jq.stats import Stats

    T = TypeVar("T")
    Payloads = Union[Iterable[Union[Payload, Item]], AsyncIterable[Union[Payload, Item]]]

__all__ = ["Queue"]


class Queue:
    """A durable queue of jobs. Made by Connection.queue(). Tasks of any loop may use it.

    Delivery is at-least-once: a handler must bear to see a job twice. Calls raise what those of
    cwist_jq.Queue raise. Of a call whose task is cancelled while it is on its way, the server may
    have done its part all the same.
    """

    __slots__ = (
        "__weakref__",
        "_acks",
        "_busy",
        "_change",
        "_claims",
        "_closing",
        "_connection",
        "_enqueues",
        "_forks",
        "_queue",
        "_releases",
        "_threads",
    )

    def __init__(self, connection: Connection, queue: cwist_jq.Queue) -> None:
        """Made by Connection.queue()."""
        self._connection = connection
        self._queue = queue
        self._threads = connection._threads  # noqa: SLF001 (one package)
        self._forks = forks()
        self._closing = Closing()
        self._enqueues = Gatherer(self._threads, partial(store, queue), size)
        # By name: a job with a large payload has its own way.
        self._acks = Gatherer(self._threads, partial(settle, methodcaller("ack"), queue.ack_many))
        self._releases = Gatherer(
            self._threads, partial(settle, methodcaller("release"), queue.release_many)
        )
        self._claims = Claims(queue, self._releases.send_surely)
        self._change = threading.Condition(threading.Lock())
        self._busy = 0  # settlements on their way that are not gathered

    def _check(self) -> None:
        """Raises unless the queue is open, and in this process."""
        if forks() != self._forks:
            raise Closed(f"the queue {self.name} was opened in another process; open it again")
        if self._closing.begun or self._queue.closed:
            raise Closed(f"the queue {self.name} is closed")

    async def _run(self, call: Callable[..., T], *arguments: object) -> T:
        """Makes a blocking call that may be forgotten when the task is cancelled."""
        self._check()
        return await self._threads.run(call, *arguments)

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._queue.name

    @property
    def max_retries(self) -> int:
        """How often a job is delivered, the first time included, before it is dead."""
        return self._queue.max_retries

    @property
    def closed(self) -> bool:
        """True from close() on, of the queue or of its connection."""
        return self._closing.begun or self._queue.closed

    # ---- enqueue ----

    async def enqueue(
        self,
        payload: Payload,
        *,
        type: str | None = None,
        delay: Duration = NOW,
        dedupe_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Stores a job. Enqueues of many tasks share round trips; each has its own result.

        Example:
            await queue.enqueue(b'{"to": "a@b.co"}', type="welcome")

        Args:
            payload: Any bytes, as for cwist_jq.Queue.enqueue(). What is not of the type bytes is
                copied at once.
            type: A tag for the handler.
            delay: How long the job waits on the server before it can be claimed.
            dedupe_key: At most one job with this key lives.
            headers: Texts that go to the worker beside the payload.

        Returns:
            The id of the job; that of a duplicate as a DuplicateId.

        Raises:
            InvalidParam, TooLarge, QueueFull, Unsupported, ConnectionFailed, OutcomeUnknown,
                Refused, Denied, Closed: As of cwist_jq.Queue.enqueue(). An enqueue that waited for
                its turn while the server could not be reached fails with those before it.
        """
        self._check()
        if type is not None:
            options.kind(type)
        if not isinstance(payload, bytes):
            _lib.view(payload)
            payload = memoryview(payload).tobytes()
        if delay is NOW and dedupe_key is None and headers is None:
            item = Item(payload, type)
        else:
            extras_of(delay, dedupe_key, headers)
            kept = None if headers is None else dict(headers)
            item = Item(payload, type, delay=delay, dedupe_key=dedupe_key, headers=kept)
        stored: str = await self._enqueues.submit(item).wait()
        return stored

    async def enqueue_many(self, payloads: Payloads, *, type: str | None = None) -> list[str]:
        """Stores jobs in the given order, in pieces of up to 1000, each checked before it is sent.

        This is no transaction: what was stored before something fails stays stored, also when the
        task is cancelled.

        Args:
            payloads: Payloads or Items, as for cwist_jq.Queue.enqueue_many(). Any iterable, also an
                asynchronous one; it is taken from on the loop, and no more than a piece is held.
            type: The type of those that have none of their own.

        Returns:
            The ids of the jobs, that of a duplicate as a DuplicateId.

        Raises:
            Error: As of cwist_jq.Queue.enqueue_many(), with `results`.
        """
        self._check()
        return await enqueue_many(self._store, payloads, type)

    async def _store(self, piece: list[Any], type: str | None) -> list[str]:
        return await self._run(partial(self._queue.enqueue_many, type=type), piece)

    async def enqueue_all(self, payloads: Payloads, *, type: str | None = None) -> list[str]:
        """Stores jobs, all or none, in one step of the server.

        Args:
            payloads: As for enqueue_many(), at most 1000.
            type: The type of those that have none of their own.

        Returns:
            The ids of the jobs, that of a duplicate as a DuplicateId.

        Raises:
            Error: As of cwist_jq.Queue.enqueue_all().
        """
        self._check()
        items: list[Any] = []
        if hasattr(payloads, "__aiter__"):
            async for one in payloads:
                items.append(one)
                if len(items) > _lib.BATCH_MAX:
                    break
        else:
            for one in payloads:
                items.append(one)
                if len(items) > _lib.BATCH_MAX:
                    break
        return await self._run(partial(self._queue.enqueue_all, type=type), items)

    # ---- claim ----

    async def claim(self, timeout: Duration | None = None) -> Job | None:
        """Claims the next job. One thread claims for all tasks that wait, the longest first.

        A task may be cancelled at any moment: a job that comes then goes to another task that
        waits, or is released and spends no attempt.

        Example:
            job = await queue.claim(timeout=5.0)
            if job is not None:
                async with job:
                    await handle(job.payload)

        Args:
            timeout: How long to wait for a job: seconds from 0 up, or a timedelta. 0 looks once;
                None waits for ever.

        Returns:
            The job, or None when none came in time.

        Raises:
            InvalidParam, ConnectionFailed, Interrupted, Closed: As of cwist_jq.Queue.claim().
        """
        timeout_ms = options.timeout(timeout)
        self._check()
        jobs = await self._claims.claim(1, timeout_ms)
        return Job(self, jobs[0]) if jobs else None

    async def claim_many(self, n: int, timeout: Duration | None = None) -> list[Job]:
        """Claims up to n jobs: waits for one, and takes what is ready then.

        When several tasks wait, each gets a job before one gets more. All leases begin at once:
        claim no more than can be handled within the visibility timeout.

        Args:
            n: How many at most: 1 to 1000.
            timeout: How long to wait for the first, as for claim().

        Returns:
            The jobs, an empty list when none came in time.

        Raises:
            InvalidParam, ConnectionFailed, Interrupted, Closed: As for claim().
        """
        most = options.batch_size("n", n)
        timeout_ms = options.timeout(timeout)
        self._check()
        return self._wrap(await self._claims.claim(most, timeout_ms))

    def _wrap(self, jobs: Iterable[cwist_jq.Job]) -> list[Job]:
        return [Job(self, job) for job in jobs]

    def __aiter__(self) -> AsyncIterator[Job]:
        """Yields jobs for ever; one is claimed only when the loop asks for it.

        Example:
            async for job in queue:
                async with job:
                    await handle(job.payload)
        """
        return _Jobs(self)

    # ---- settle ----

    async def ack_many(self, jobs: Iterable[Job]) -> None:
        """Removes jobs for good, in one round trip for each 256. All are settled then.

        Raises:
            Error: As of cwist_jq.Queue.ack_many(), with `results`.
        """
        await self._run_surely(self._queue.ack_many, _unwrap(jobs))

    async def nack_many(self, jobs: Iterable[Job]) -> None:
        """Hands jobs back for a retry, each as Job.nack() does. Otherwise as ack_many()."""
        await self._run_surely(self._queue.nack_many, _unwrap(jobs))

    async def release_many(self, jobs: Iterable[Job]) -> None:
        """Hands jobs back at once, each as Job.release() does. Otherwise as ack_many()."""
        await self._run_surely(self._queue.release_many, _unwrap(jobs))

    async def ack_and_claim(
        self, jobs: Iterable[Job], n: int, timeout: Duration | None = None
    ) -> list[Job]:
        """Acks jobs and claims the next ones, in the same round trip when some are ready.

        Args:
            jobs: What is done, as for ack_many(); may be empty.
            n: How many to claim at most: 1 to 1000.
            timeout: How long to wait for the first, as for claim().

        Returns:
            The claimed jobs, an empty list when none came in time.

        Raises:
            Error: As of cwist_jq.Queue.ack_and_claim(), with `results` and `claimed`.
        """
        most = options.batch_size("n", n)
        timeout_ms = options.timeout(timeout)
        deadline = time.monotonic() + timeout_ms / 1000
        done = _unwrap(jobs)
        self._check()
        if done:
            claimed, error = await self._run_surely(
                _ack_and_poll, self._queue, done, most, undo=self._return
            )
            if error is not None:
                error.claimed = self._wrap(claimed)  # type: ignore[assignment] # those of aio
                raise error
            if claimed or timeout_ms == 0:
                return self._wrap(claimed)
        if timeout_ms != options.FOR_EVER_MS:
            timeout_ms = max(0, round((deadline - time.monotonic()) * 1000))
        return self._wrap(await self._claims.claim(most, timeout_ms))

    def _return(self, outcome: tuple[list[cwist_jq.Job], Error | None]) -> None:
        """The task that acked and claimed was cancelled."""
        for job in outcome[0]:
            self._hand_back(job)

    def _hand_back(self, job: cwist_jq.Job) -> None:
        """Releases a job without waiting for that."""
        self._releases.send_surely(job)

    async def _ack(self, job: cwist_jq.Job) -> None:
        self._check()
        await self._acks.submit(job, surely=True).wait()

    async def _release(self, job: cwist_jq.Job) -> None:
        self._check()
        await self._releases.submit(job, surely=True).wait()

    async def _run_surely(
        self,
        call: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], None] | None = None,
    ) -> T:
        """Makes a blocking call that is made even when the task is cancelled; close() waits."""
        self._check()
        with self._change:
            self._busy += 1
        return await self._threads.run(self._counted, call, *arguments, undo=undo, surely=True)

    def _counted(self, call: Callable[..., T], *arguments: object) -> T:
        try:
            return call(*arguments)
        finally:
            with self._change:
                self._busy -= 1
                self._change.notify_all()

    # ---- upkeep ----

    @property
    def dead(self) -> DeadLetters:
        """The dead letters of the queue: to list, read, requeue and purge."""
        return DeadLetters(self)

    async def dead_count(self) -> int:
        """Counts the dead letters of the queue.

        Raises:
            ConnectionFailed, Closed: As of cwist_jq.Queue.dead_count().
        """
        return await self._run(self._queue.dead_count)

    async def stats(self) -> Stats:
        """Counts what the queue holds; and tells what this queue object did since it was opened.

        Raises:
            ConnectionFailed, Denied, Closed: As of cwist_jq.Queue.stats().
        """
        return await self._run(self._queue.stats)

    async def purge(self) -> int:
        """Deletes for good the jobs that are ready or delayed now; claimed and dead ones stay.

        Returns:
            How many were deleted.

        Raises:
            ConnectionFailed, OutcomeUnknown, Denied, Closed: As of cwist_jq.Queue.purge().
        """
        return await self._run(self._queue.purge)

    async def pause(self) -> None:
        """Stops all claims of the queue, by anyone, until resume(): they wait on.

        Raises:
            Unsupported, ConnectionFailed, Denied, Closed: As of cwist_jq.Queue.pause().
        """
        await self._run(self._queue.pause)

    async def resume(self) -> None:
        """Lets claims go on.

        Raises:
            Unsupported, ConnectionFailed, Denied, Closed: As for pause().
        """
        await self._run(self._queue.resume)

    def interrupt(self) -> None:
        """Wakes the claims of this queue object that wait now: they raise Interrupted.

        Raises:
            Closed: The queue is closed.
        """
        self._check()
        self._claims.interrupt(Interrupted(f"the claim on queue {self.name} was interrupted"))

    # ---- the end ----

    async def close(self) -> None:
        """Closes the queue; tasks that wait in a claim raise Closed. Closing again is harmless.

        What tasks have given to the queue before is sent first: enqueues, acks, and jobs that go
        back. That takes the operation timeout at most for each batch of them. Jobs that are still
        claimed come back to other workers after the visibility timeout.
        """
        if self._begin_closing():
            self._closing.start(self._close)
        await self._closing.wait()

    def _begin_closing(self) -> bool:
        """Takes no more calls; False when that is so already."""
        if forks() != self._forks:
            self._queue.close()
            return False
        if not self._closing.begin():
            return False
        self._claims.close()
        return True

    def _close(self) -> None:
        """Sends what is on its way, and closes. In a thread."""
        self._claims.join()
        for gatherer in (self._enqueues, self._acks, self._releases):
            gatherer.drain()
        with self._change:
            while self._busy:
                self._change.wait()
        self._queue.close()

    async def __aenter__(self) -> Self:
        """Returns the queue, which must be open."""
        self._check()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the queue."""
        await self.close()

    def __repr__(self) -> str:
        """The name and the state."""
        state = "closed" if self.closed else "open"
        return f"<cwist_jq.aio.Queue {self.name!r} {state}>"


class _Jobs:
    """The jobs of `async for job in queue`."""

    __slots__ = ("_queue",)

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Job:
        while True:
            job = await self._queue.claim()
            if job is not None:
                return job


def _unwrap(jobs: Iterable[Job]) -> list[cwist_jq.Job]:
    found = []
    for index, job in enumerate(jobs):
        if not isinstance(job, Job):
            raise InvalidType(f"jobs[{index}] is a {type(job).__name__}; allowed: a Job")
        found.append(job._job)  # noqa: SLF001 (one package)
    return found


def _ack_and_poll(
    queue: cwist_jq.Queue, jobs: list[cwist_jq.Job], most: int
) -> tuple[list[cwist_jq.Job], Error | None]:
    """Acks and looks once; an error comes back beside the jobs that came all the same."""
    try:
        return queue.ack_and_claim(jobs, most, 0), None
    except Error as error:
        return list(error.claimed), error
