"""The producers and workers of the soak test, each a process of its own.

    python -m tests.fault.soak produce URL QUEUE FIRST STEP COUNT
    python -m tests.fault.soak work URL QUEUE FILE

A job is a number and a checksum. A worker appends the number to its file, and only then acks.
"""

from __future__ import annotations

import os
import sys
import time
import zlib

import cwist_jq

#: What a worker writes for a job: seven digits and a newline.
RECORD = 8
#: Every job with such a number is nacked until it is dead.
POISON = 2500
VISIBILITY = 1.0
DELIVERIES = 20

_FILLER = bytes(range(256))


def payload(number: int) -> bytes:
    """The payload of a job."""
    body = b"%07d" % number + _FILLER[: number % 200]
    return body + b"%08x" % zlib.crc32(body)


def number_of(data: bytes) -> int:
    """The number of a job; a ValueError when its payload was damaged."""
    number = int(data[:7])
    if data != payload(number):
        raise ValueError(f"the payload of job {number} is damaged")
    return number


def open_queue(url: str, name: str) -> cwist_jq.Queue:
    """Opens the queue, trying again while the server is restarted."""
    while True:
        try:
            conn = cwist_jq.connect(url)
            return conn.queue(name, visibility_timeout=VISIBILITY, max_retries=DELIVERIES)
        except (cwist_jq.ConnectionFailed, cwist_jq.Refused):
            time.sleep(0.1)


def produce(url: str, name: str, first: int, step: int, count: int) -> int:
    """Enqueues its share; returns how often the outcome was unknown."""
    queue = open_queue(url, name)
    unknown = 0
    for number in range(first, count, step):
        while True:
            try:
                queue.enqueue(payload(number), type="soak")
                break
            except (cwist_jq.ConnectionFailed, cwist_jq.Refused):
                continue  # not stored
            except cwist_jq.OutcomeUnknown:
                unknown += 1
    return unknown


def work(url: str, name: str, file: str) -> None:
    """Works until it is killed."""
    record = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    queue = open_queue(url, name)
    while True:
        try:
            job = queue.claim(5.0)
            if job is None:
                continue
            try:
                number = number_of(job.payload)
            except ValueError:
                os.write(record, b"damaged\n")
                raise
            if number % POISON == 0:
                job.nack(reason="poison")
                continue
            os.write(record, b"%07d\n" % number)
            job.ack()
        except (
            cwist_jq.LeaseLost,
            cwist_jq.ConnectionFailed,
            cwist_jq.OutcomeUnknown,
            cwist_jq.Refused,
        ):
            continue


def main(words: list[str]) -> None:
    """The command line."""
    if words[0] == "produce":
        print(produce(words[1], words[2], *map(int, words[3:])), flush=True)
    else:
        work(*words[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
