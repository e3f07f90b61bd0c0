"""What the processes of the torture agree on: payloads and the options of the queue."""

from __future__ import annotations

import contextlib
import time
import zlib

import cwist_jq

__all__ = ["DELIVERIES", "PASSING", "POISON", "VISIBILITY", "number_of", "open_queue", "payload"]

VISIBILITY = 1.0
DELIVERIES = 6

#: Every job with such a number fails until it is dead.
POISON = 97

#: What a call may say while servers and connections break. The caller goes on.
PASSING = (
    cwist_jq.ConnectionFailed,
    cwist_jq.LeaseLost,
    cwist_jq.NotSent,
    cwist_jq.OutcomeUnknown,
    cwist_jq.Refused,
    cwist_jq.Timeout,
)

_FILLER = bytes(range(256))


def payload(number: int) -> bytes:
    """The payload of a job: its number, some bytes, a checksum."""
    body = b"%012d" % number + _FILLER[: number % 200]
    return body + b"%08x" % zlib.crc32(body)


def number_of(data: bytes) -> int | None:
    """The number of a job; None when its payload was damaged."""
    with contextlib.suppress(ValueError):
        number = int(data[:12])
        if data == payload(number):
            return number
    return None


def open_queue(url: str, name: str) -> cwist_jq.Queue:
    """The queue on a connection of its own; tries again while the server is away."""
    while True:
        try:
            conn = cwist_jq.connect(url, operation_timeout=3.0)
            return conn.queue(
                name, visibility_timeout=VISIBILITY, max_retries=DELIVERIES, retry_delay=0.05
            )
        except (cwist_jq.ConnectionFailed, cwist_jq.Refused, cwist_jq.Timeout):
            time.sleep(0.05)
