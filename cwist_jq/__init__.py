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
from cwist_jq.batch import Item
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
    NotSent,
    OutcomeUnknown,
    OutOfMemory,
    ProtocolError,
    Refused,
    Timeout,
    TooLarge,
    Unsupported,
)
from cwist_jq.job import Job
from cwist_jq.queue import Queue

__all__ = [
    "Closed",
    "Conflict",
    "Connection",
    "ConnectionFailed",
    "Denied",
    "Error",
    "Interrupted",
    "InvalidParam",
    "InvalidType",
    "Item",
    "Job",
    "LeaseLost",
    "NotSent",
    "OutOfMemory",
    "OutcomeUnknown",
    "ProtocolError",
    "Queue",
    "Refused",
    "Timeout",
    "TooLarge",
    "Unsupported",
    "__version__",
    "connect",
    "get_include",
    "get_library_dirs",
]
