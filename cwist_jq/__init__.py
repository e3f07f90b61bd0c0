"""A durable job queue on Redis Streams and NATS JetStream.

Example:
    import cwist_jq

    with cwist_jq.connect("redis://127.0.0.1:6379") as conn:
        queue = conn.queue("emails")
        queue.enqueue(b"hello", type="welcome")
        job = queue.claim(timeout=5.0)
        if job is not None:
            with job:
                print(job.payload)

What the library has to say goes to the logger "cwist_jq".
"""

from __future__ import annotations

from cwist_jq._version import __version__
from cwist_jq.build_flags import get_include, get_library_dirs
from cwist_jq.connection import Connection, connect
from cwist_jq.errors import (
    Closed,
    Conflict,
    ConnectionFailed,
    Denied,
    Error,
    Interrupted,
    InvalidParam,
    InvalidType,
    LeaseLost,
    NotFound,
    NotSent,
    OutcomeUnknown,
    OutOfMemory,
    ProtocolError,
    QueueFull,
    Refused,
    Timeout,
    TooLarge,
    Unsupported,
)
from cwist_jq.ids import DuplicateId
from cwist_jq.item import Item
from cwist_jq.job import Job
from cwist_jq.queue import Queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cwist_jq.dead import DeadLetter, DeadLetters, DeadPage
    from cwist_jq.stats import Stats

__all__ = [
    "Closed",
    "Conflict",
    "Connection",
    "ConnectionFailed",
    "DeadLetter",
    "DeadLetters",
    "DeadPage",
    "Denied",
    "DuplicateId",
    "Error",
    "Interrupted",
    "InvalidParam",
    "InvalidType",
    "Item",
    "Job",
    "LeaseLost",
    "NotFound",
    "NotSent",
    "OutOfMemory",
    "OutcomeUnknown",
    "ProtocolError",
    "Queue",
    "QueueFull",
    "Refused",
    "Stats",
    "Timeout",
    "TooLarge",
    "Unsupported",
    "__version__",
    "connect",
    "get_include",
    "get_library_dirs",
]

# What needs heavy imports is imported when it is asked for.
_LATE = {"DeadLetter": "dead", "DeadLetters": "dead", "DeadPage": "dead", "Stats": "stats"}


def __getattr__(name: str) -> object:
    """Imports a class of _LATE."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"cwist_jq.{_LATE[name]}"), name)
