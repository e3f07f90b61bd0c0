"""Jobs: one delivery each, which ends with ack, nack or release."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from cwist_jq import _lib, options
from cwist_jq.errors import Error
from cwist_jq.job import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import NoReturn

    from typing_extensions import Self

    import cwist_jq
    from cwist_jq.aio.queue import Queue
    from cwist_jq.options import Duration

__all__ = ["Job"]


class Job:
    """A claimed job. Made by Queue.claim() and its like. It cannot be pickled.

    An async with statement settles it: ack on a clean exit; nack when the block raises an
    Exception, with its type and message as the reason; release when the task is cancelled, and on
    KeyboardInterrupt, SystemExit and the like. A job that the block settled itself is left alone. A
    job that is dropped undecided comes back after the visibility timeout.

    A cancelled ack(), nack() or release() is carried out all the same.

    Example:
        async with job:
            await send(job.payload)
    """

    __slots__ = ("_job", "_queue")

    def __init__(self, queue: Queue, job: cwist_jq.Job) -> None:
        """Made by claims."""
        self._queue = queue
        self._job = job

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._job.queue

    @property
    def payload(self) -> bytes:
        """The bytes that were enqueued. One of more than 4 KB is copied when it is read first."""
        return self._job.payload

    @property
    def type(self) -> str | None:
        """The type tag, or None."""
        return self._job.type

    @property
    def id(self) -> str:
        """The id of the job, the same in all its deliveries."""
        return self._job.id

    @property
    def attempts(self) -> int:
        """How often it was delivered, this time included."""
        return self._job.attempts

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the job; the mapping is made when it is asked for."""
        return self._job.headers

    @property
    def lease_lost(self) -> bool:
        """True when another worker may have the job by now; no call to the server."""
        return self._job.lease_lost

    @property
    def lease_remaining(self) -> float:
        """Seconds until another worker may have the job, by the local clock; no call to the server.

        0.0 when the lease is over or the job is settled.
        """
        return self._job.lease_remaining

    async def ack(self) -> None:
        """Removes the job for good. Whatever it raises, this object is settled then.

        Acks of many tasks share round trips.

        Raises:
            LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As of cwist_jq.Job.ack().
        """
        await self._queue._ack(self._job)  # noqa: SLF001 (one package)

    async def nack(
        self, reason: str | None = None, *, delay: Duration | None = None, dead: bool = False
    ) -> None:
        """Hands the job back for a retry, after the delay that the queue's retry policy says.

        Args:
            reason: What went wrong, kept with the dead letter.
            delay: How long this job waits, instead of what the policy says.
            dead: To the dead letters now, with the cause "rejected".

        Raises:
            InvalidParam, LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As of
                cwist_jq.Job.nack().
        """
        call = partial(self._job.nack, delay=delay, dead=dead)
        await self._queue._run_surely(call, reason)  # noqa: SLF001 (one package)

    async def release(self, delay: Duration = 0) -> None:
        """Hands the job back, as if it had not been claimed: no attempt is spent.

        Args:
            delay: How long it waits before it can be claimed.

        Raises:
            InvalidParam, Unsupported, LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As of
                cwist_jq.Job.release().
        """
        if options.delay(delay) == 0:
            await self._queue._release(self._job)  # noqa: SLF001 (one package)
        else:
            await self._queue._run_surely(self._job.release, delay)  # noqa: SLF001 (one package)

    async def renew(self) -> None:
        """Keeps the lease: a thread of the C library extends it in time until the job is settled.

        It needs neither the loop nor the interpreter lock.

        Raises:
            LeaseLost, Closed: As of cwist_jq.Job.renew().
        """
        await self._queue._run(self._job.renew)  # noqa: SLF001 (one package)

    async def extend(self) -> None:
        """Restarts the visibility timeout of the job, which stays claimed.

        Raises:
            LeaseLost: The job was given to another worker.
            ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        await self._queue._run(self._job.extend)  # noqa: SLF001 (one package)

    def _settled(self) -> bool:
        return _lib.is_settled(self._job._batch, self._job._index)  # noqa: SLF001 (one package)

    async def __aenter__(self) -> Self:
        """Returns the job, which must not be settled."""
        self._job.__enter__()
        return self

    async def __aexit__(
        self,
        kind: object,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Settles the job, unless the block did.

        What the block raised goes on; when the job cannot be handed back then, that is only logged,
        and it comes back after the visibility timeout.
        """
        if self._settled():
            return
        if value is None:
            await self.ack()
            return
        try:
            if isinstance(value, GeneratorExit):  # the coroutine is closed: it must not wait
                self._queue._hand_back(self._job)  # noqa: SLF001 (one package)
            elif isinstance(value, Exception):
                await self._queue._run_surely(self._job._nack, reason_of(value))  # noqa: SLF001
            else:
                await self.release()
        except Error as error:
            logging.getLogger("cwist_jq").warning(
                "job %s of queue %s was not handed back after %s; it comes back after the "
                "visibility timeout: %s",
                self.id,
                self._queue.name,
                type(value).__qualname__,
                error,
            )

    def __reduce__(self) -> NoReturn:
        """Refuses: a lease belongs to the process that claimed the job."""
        raise TypeError(f"job {self.id} cannot be pickled or copied; pass on its payload")

    def __repr__(self) -> str:
        """The id, the type and the attempts."""
        return f"<cwist_jq.aio.Job {self.id!r} type={self.type!r} attempts={self.attempts}>"
