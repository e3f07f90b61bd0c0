"""Jobs: one delivery each, which ends with ack, nack or release."""

from __future__ import annotations

import _thread
import os

from cwist_jq import _lib, options
from cwist_jq.errors import Closed, Error, InvalidParam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import NoReturn

    from typing_extensions import Self

    from cwist_jq._native import Batch
    from cwist_jq.options import Duration
    from cwist_jq.queue import Queue

__all__ = ["Job", "LateJob", "job_of", "jobs_of"]

REASON_MAX = 4096
SMALL = _lib.SMALL

# Held while a payload is copied from where a settled job would have none any more.
_copying = _thread.RLock()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_copying._at_fork_reinit)  # type: ignore[attr-defined]  # noqa: SLF001


def reason_of(error: BaseException) -> bytes:
    """The type and message of an exception as a reason: UTF-8, cut to what a reason may have."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 (a broken __str__ must not keep the job from being nacked)
        message = "(no message: its __str__ failed)"
    text = type(error).__qualname__ + (f": {message}" if message else "")
    encoded = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")
    return encoded[:REASON_MAX].decode("utf-8", "ignore").encode()


class Job:
    """A claimed job. Made by Queue.claim() and its like. It cannot be pickled.

    A with statement settles it: ack on a clean exit; nack when the block raises an Exception,
    with its type and message as the reason; release on KeyboardInterrupt, SystemExit and the like.
    A job that the block settled itself is left alone. A job that is dropped undecided comes back
    after the visibility timeout.

    Example:
        with job:
            send(job.payload)

    Attributes:
        payload: The bytes that were enqueued. A large one is copied when it is read first, or when
            the job is settled.
        type: The type tag, or None.
        id: The id of the job, the same in all its deliveries.
        attempts: How often it was delivered, this time included.
        headers: What the producer gave it, and on NATS what other publishers did; read-only.
        queue: The name of its queue.
    """

    __slots__ = ("_batch", "_index", "_queue", "attempts", "id", "payload", "type")

    _batch: Batch  # what the claim brought; shared with the other jobs of it
    _index: int  # where this one is in it
    _queue: Queue
    payload: bytes
    type: str | None
    id: str
    attempts: int

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._queue.name

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the job; the mapping is made when it is asked for."""
        from types import MappingProxyType  # late: most programs never need it

        return MappingProxyType(_lib.headers(self._batch, self._index))

    @property
    def lease_lost(self) -> bool:
        """True when another worker may have the job by now; no call to the server.

        The server said so when the lease was extended or renewed, or the lease is over by the local
        clock. False when the job is settled.
        """
        return _lib.lease_lost(self._batch, self._index)

    @property
    def lease_remaining(self) -> float:
        """Seconds until another worker may have the job, by the local clock; no call to the server.

        0.0 when the lease is over or the job is settled.
        """
        return _lib.lease_remaining(self._batch, self._index)

    def ack(self) -> None:
        """Removes the job for good. Whatever it raises, this object is settled then.

        Raises:
            LeaseLost: The job was given to another worker; nothing changed.
            ConnectionFailed: No server within the operation timeout; the job comes back.
            OutcomeUnknown: The answer was lost.
            Closed: The job is settled, or its queue is closed.
        """
        queue = self._queue
        _lib.ack(self._batch, self._index, queue._handle or queue._live())  # noqa: SLF001 (one package)

    def nack(
        self, reason: str | None = None, *, delay: Duration | None = None, dead: bool = False
    ) -> None:
        """Hands the job back for a retry, after the delay that the queue's retry policy says.

        When it was delivered max_retries times, it becomes a dead letter, whatever the delay. This
        object is settled then, whatever is raised, other than by a wrong argument.

        Args:
            reason: What went wrong, kept with the dead letter: up to 4096 bytes of UTF-8.
            delay: How long this job waits, instead of what the policy says: 0 to 31536000 seconds
                (365 days), or a timedelta.
            dead: To the dead letters now, with the cause "rejected".

        Raises:
            InvalidParam: An argument is out of its range; the job is still claimed.
            LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        why = None
        if reason is not None:
            why = options.text("reason", reason)
            if len(why) > REASON_MAX:
                raise InvalidParam(
                    f"reason has {len(why)} bytes; allowed: up to {REASON_MAX} bytes of UTF-8"
                )
        delay_ms = None if delay is None else options.delay(delay)
        self._nack(why, delay_ms, dead=options.flag("dead", dead))

    def _nack(
        self, reason: bytes | None, delay_ms: int | None = None, *, dead: bool = False
    ) -> None:
        queue = self._queue._live()  # noqa: SLF001 (one package)
        _lib.nack(self._batch, self._index, queue, reason, delay_ms, dead=dead)

    def release(self, delay: Duration = 0) -> None:
        """Hands the job back, as if it had not been claimed: no attempt is spent.

        Args:
            delay: How long it waits before it can be claimed: 0 to 31536000 seconds (365 days), or
                a timedelta.

        Raises:
            InvalidParam: The delay is out of its range; the job is still claimed.
            Unsupported: A delay on NATS needs server 2.12 and a queue without max_length. The job
                comes back after the visibility timeout.
            LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        self._release(options.delay(delay))

    def _release(self, delay_ms: int) -> None:
        _lib.release(self._batch, self._index, self._queue._live(), delay_ms)  # noqa: SLF001 (one package)

    def renew(self) -> None:
        """Keeps the lease: a thread of the C library extends it in time until the job is settled.

        It needs no interpreter lock. When it cannot keep the lease, it logs a warning, and
        `lease_lost` becomes true. The queue option auto_renew does this for every claimed job.

        Raises:
            LeaseLost: The lease is over already.
            Closed: The job is settled, or its queue is closed.
        """
        _lib.renew(self._batch, self._index, self._queue._live())  # noqa: SLF001 (one package)

    def extend(self) -> None:
        """Restarts the visibility timeout of the job, which stays claimed.

        Raises:
            LeaseLost: The job was given to another worker.
            ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        _lib.extend(self._batch, self._index, self._queue._live())  # noqa: SLF001 (one package)

    def __enter__(self) -> Self:
        """Returns the job, which must not be settled."""
        if _lib.is_settled(self._batch, self._index):
            raise Closed(f"the job {self.id} was acked, nacked or released before")
        return self

    def __exit__(
        self,
        kind: object,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Settles the job, unless the block did.

        What the block raised goes on; when the job cannot be handed back then, that is only logged,
        and it comes back after the visibility timeout.
        """
        if _lib.is_settled(self._batch, self._index):
            return
        if value is None:
            self.ack()
            return
        try:
            if isinstance(value, Exception):
                self._nack(reason_of(value))
            else:
                self._release(0)
        except Error as error:
            import logging

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
        return f"<cwist_jq.Job {self.id!r} type={self.type!r} attempts={self.attempts}>"


class LateJob(Job):
    """A job whose large payload stays in C until it is read. Else it is a Job."""

    __slots__ = ("_payload",)

    _payload: bytes | None  # None: not read yet

    @property
    def payload(self) -> bytes:  # type: ignore[override]  # nobody is to set that of a Job
        """The bytes that were enqueued."""
        return self.keep_payload()

    @property
    def payload_size(self) -> int:
        """Its length, without a copy."""
        return self._batch.sizes[self._index]

    def keep_payload(self) -> bytes:
        """Copies the payload; at the latest when the job is settled, which frees what C has."""
        if self._payload is None:
            with _copying:
                if self._payload is None:
                    self._payload = _lib.payload(self._batch, self._index)
        return self._payload

    def ack(self) -> None:
        """As Job.ack()."""
        self.keep_payload()
        super().ack()

    def _nack(
        self, reason: bytes | None, delay_ms: int | None = None, *, dead: bool = False
    ) -> None:
        self.keep_payload()
        super()._nack(reason, delay_ms, dead=dead)

    def _release(self, delay_ms: int) -> None:
        self.keep_payload()
        super()._release(delay_ms)


def jobs_of(queue: Queue, batch: Batch) -> list[Job]:
    """Makes the jobs that a claim brought."""
    texts, payloads, sizes, attempts = _lib.describe(batch)
    new = Job.__new__
    jobs = []
    start = 0
    each = zip(range(len(sizes)), texts[::2], texts[1::2], sizes, attempts)
    for index, name, kind, size, attempt in each:
        if size <= SMALL:
            end = start + size
            job = new(Job)
            job.payload = payloads[start:end]
            start = end
        else:
            job = _late()
        job._batch = batch  # noqa: SLF001 (its only maker)
        job._index = index  # noqa: SLF001
        job._queue = queue  # noqa: SLF001
        job.id = name
        job.type = kind or None
        job.attempts = attempt
        jobs.append(job)
    return jobs


def job_of(queue: Queue, batch: Batch) -> Job:
    """Makes the one job that a claim brought."""
    name, kind, payload, size, attempts = _lib.describe_one(batch)
    if size <= SMALL:
        job = Job.__new__(Job)
        job.payload = payload
    else:
        job = _late()
    job._batch = batch  # noqa: SLF001 (its only maker)
    job._index = 0  # noqa: SLF001
    job._queue = queue  # noqa: SLF001
    job.id = name
    job.type = kind or None
    job.attempts = attempts
    return job


def _late() -> Job:
    job = LateJob.__new__(LateJob)
    job._payload = None  # noqa: SLF001 (its only maker)
    return job
