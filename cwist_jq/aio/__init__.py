"""cwist_jq for asyncio: the same names, options and errors, and the loop is never blocked.

Example:
    import asyncio
    import cwist_jq.aio

    async def main():
        async with cwist_jq.aio.connect("redis://127.0.0.1:6379") as conn:
            async with conn.queue("emails") as queue:
                await queue.enqueue(b"hello", type="welcome")
                async for job in queue:
                    async with job:
                        print(job.payload)

    asyncio.run(main())

Blocking calls are made by a few threads of the connection. Any loop that asyncio knows will do.
"""

from __future__ import annotations

from cwist_jq.aio.connection import Connection, connect
from cwist_jq.aio.dead import DeadLetters
from cwist_jq.aio.job import Job
from cwist_jq.aio.opening import Opening
from cwist_jq.aio.queue import Queue
from cwist_jq.dead import DeadLetter, DeadPage
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
    "Opening",
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
    "connect",
]
