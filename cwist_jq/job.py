"""Jobs: one delivery each, which ends with ack, nack or release."""

from __future__ import annotations

from cwist_jq import _lib, options
from cwist_jq.errors import Closed, Error, InvalidParam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from cwist_jq._native import Delivery
    from cwist_jq.queue import Queue

__all__ = ["Job"]

REASON_MAX = 1024


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
    """A claimed job. Made by Queue.claim().

    A with statement settles it: ack on a clean exit; nack when the block raises an Exception,
    with its type and message as the reason; release on KeyboardInterrupt, SystemExit and the like.
    A job that the block settled itself is left alone. A job that is dropped undecided comes back
    after the visibility timeout.

    Example:
        with job:
            send(job.payload)

    Attributes:
        payload: The bytes that were enqueued.
        type: The type tag, or None.
        id: The id of the job, the same in all its deliveries.
        attempts: How often it was delivered, this time included.
    """

    __slots__ = ("_delivery", "_queue", "attempts", "id", "payload", "type")

    def __init__(  # noqa: PLR0913, PLR0917 (one per field)
        self,
        queue: Queue,
        delivery: Delivery,
        payload: bytes,
        type: str | None,
        id: str,
        attempts: int,
    ) -> None:
        """Wraps a delivery; Queue.claim() makes jobs."""
        self._queue = queue
        self._delivery = delivery
        self.payload = payload
        self.type = type
        self.id = id
        self.attempts = attempts

    def ack(self) -> None:
        """Removes the job for good. Whatever it raises, this object is settled then.

        Raises:
            LeaseLost: The job was given to another worker; nothing changed.
            ConnectionFailed: No server within the operation timeout; the job comes back.
            OutcomeUnknown: The answer was lost.
            Closed: The job is settled, or its queue is closed.
        """
        _lib.ack(self._delivery, self._queue._live())  # noqa: SLF001 (one package)

    def nack(self, reason: str | None = None) -> None:
        """Hands the job back for a retry after the queue's retry delay.

        When it was delivered max_retries times, it becomes a dead letter. This object is settled
        then, whatever is raised, other than by a wrong reason.

        Args:
            reason: What went wrong, kept with the dead letter: up to 1024 bytes of UTF-8.

        Raises:
            InvalidParam: The reason is too long; the job is still claimed.
            LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        why = None
        if reason is not None:
            why = options.text("reason", reason)
            if len(why) > REASON_MAX:
                raise InvalidParam(
                    f"reason has {len(why)} bytes; allowed: up to {REASON_MAX} bytes of UTF-8"
                )
        _lib.nack(self._delivery, self._queue._live(), why)  # noqa: SLF001 (one package)

    def release(self) -> None:
        """Hands the job back at once, as if it had not been claimed: no attempt is spent.

        Raises:
            LeaseLost, ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        _lib.release(self._delivery, self._queue._live())  # noqa: SLF001 (one package)

    def extend(self) -> None:
        """Restarts the visibility timeout of the job, which stays claimed.

        Raises:
            LeaseLost: The job was given to another worker.
            ConnectionFailed, OutcomeUnknown, Closed: As for ack().
        """
        _lib.extend(self._delivery, self._queue._live())  # noqa: SLF001 (one package)

    def __enter__(self) -> Self:
        """Returns the job, which must not be settled."""
        if _lib.is_settled(self._delivery):
            raise Closed(f"the job {self.id} was acked, nacked or released before")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Settles the job, unless the block did.

        What the block raised goes on; when the job cannot be handed back then, that is only logged,
        and it comes back after the visibility timeout.
        """
        if _lib.is_settled(self._delivery):
            return
        if value is None:
            self.ack()
            return
        try:
            if isinstance(value, Exception):
                handle = self._queue._live()  # noqa: SLF001 (one package)
                _lib.nack(self._delivery, handle, reason_of(value))
            else:
                self.release()
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

    def __repr__(self) -> str:
        """The id, the type and the attempts."""
        return f"<cwist_jq.Job {self.id!r} type={self.type!r} attempts={self.attempts}>"
