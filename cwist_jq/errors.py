"""The exceptions of cwist_jq: one root, and under each the builtin that fits."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.job import Job

__all__ = [
    "Closed",
    "Conflict",
    "ConnectionFailed",
    "Denied",
    "Error",
    "Interrupted",
    "InvalidParam",
    "InvalidType",
    "LeaseLost",
    "NotFound",
    "NotSent",
    "OutOfMemory",
    "OutcomeUnknown",
    "ProtocolError",
    "QueueFull",
    "Refused",
    "Timeout",
    "TooLarge",
    "Unsupported",
]


class Error(Exception):
    """The root of all exceptions that cwist_jq raises.

    Attributes:
        code: The number of the error in the C library, always negative. It decides; the text
            informs.
        results: What became of each item, when a call for many items raised: the id of a stored
            job, None for a settled one, or an Error. None when another call raised.
        claimed: The jobs that ack_and_claim() claimed before it raised: yours to settle.
        done: How many jobs a purge or a requeue of all had dealt with before it raised.
    """

    code: int = -1
    results: list[str | Error | None] | None = None
    claimed: list[Job] | tuple[()] = ()
    done: int = 0

    @property
    def text(self) -> str:
        """What failed, in one line: the operation, the queue, the server and its own words."""
        return str(self.args[0]) if self.args else ""

    def again(self) -> Error:
        """Makes another one of the same class, text and code, without results."""
        other = type(self)(self.text)
        other.code = self.code
        return other


class ConnectionFailed(Error, ConnectionError):
    """No server could be reached within the timeout, or the connection broke."""

    code = -2


class OutOfMemory(Error, MemoryError):
    """This process is out of memory."""

    code = -3


class InvalidParam(Error, ValueError):
    """An argument is outside its range; the text names it and the range. Nothing was sent."""

    code = -4


class InvalidType(InvalidParam, TypeError):
    """An argument has the wrong type; the text names it and the right one. Nothing was sent."""


class ProtocolError(Error):
    """The server answered something that makes no sense."""

    code = -5


class Timeout(Error, TimeoutError):
    """The time for an operation was over. A claim without a job returns None instead."""

    code = -6


class LeaseLost(Error):
    """The job was given to another worker meanwhile; the call changed nothing."""

    code = -21


class Closed(Error):
    """The connection, queue or job is closed or settled, or belongs to another process."""

    code = -22


class Unsupported(Error):
    """This build, or this server, cannot do it."""

    code = -23


class TooLarge(Error, ValueError):
    """The payload is over the limit of the engine, which the text names. Nothing was sent."""

    code = -24


class Denied(Error, PermissionError):
    """Credentials or rights are missing, or a certificate is refused; the text says by whom."""

    code = -25


class OutcomeUnknown(Error):
    """The command was sent and its answer was lost: it was done, or it was not."""

    code = -26


class Refused(Error):
    """The server refused: out of memory or disk, read-only, or loading. Nothing was stored."""

    code = -27


class Conflict(Error):
    """What exists on the server is configured differently; the text names both values."""

    code = -28


class Interrupted(Error):
    """Queue.interrupt() ended the claim."""

    code = -29


class NotSent(Error):
    """An earlier item of the batch failed first: this one was not tried. Only in `results`."""

    code = -30


class NotFound(Error, LookupError):
    """There is no dead letter with that id: it never was, or it was requeued or purged."""

    code = -31


class QueueFull(Error):
    """The queue holds max_length jobs. Nothing was stored, and nothing was dropped."""

    code = -32
