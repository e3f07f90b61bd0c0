"""What the programs of other queues share: the command line, the clock, the handler.

    python NAME.py URL OPERATION COUNT

enqueue       one job at a time
enqueue-many  in bulk, the way the library offers for it, 100 at a time
drain         one worker process with a handler that does nothing: from the first job to the last
add           a job every 20 ms, with the time in it
wait          an idle worker: how long those jobs took

A program says "ready", waits for a line, and prints one line of JSON. It knows nothing of cwist_jq.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
import time
from typing import Any

PAYLOAD = "x" * 100
DEPTH = 100
PACE = 0.020


class Tally:
    """Counts the jobs that the handler saw, and ends the process after the last."""

    def __init__(self) -> None:
        self.left = 0
        self.waits = False
        self._first = 0
        self._latencies: list[int] = []
        self._lock = threading.Lock()

    def saw(self, stamp: int) -> None:
        now = time.monotonic_ns()
        with self._lock:
            self._first = self._first or now
            self._latencies.append(now - stamp)
            self.left -= 1
            if self.left == 0:
                self._end(now)

    def _end(self, now: int) -> None:
        if self.waits:
            write({"ns": self._latencies})
        else:
            write({"start": self._first, "end": now})
        os._exit(0)


TALLY = Tally()


def job(payload: str, stamp: int) -> None:
    """The handler."""
    TALLY.saw(stamp)


async def async_job(payload: str, stamp: int) -> None:
    """The handler, where handlers are coroutines."""
    TALLY.saw(stamp)


def write(found: dict[str, Any]) -> None:
    with open("/proc/self/status", encoding="ascii") as status:
        memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    print(json.dumps({**found, "resident_kib": memory}), flush=True)


class Peer:
    """A queue. Methods may be coroutines; what a library cannot do stays out of `can`."""

    can = ("enqueue", "enqueue-many", "drain", "wait")

    def __init__(self, url: str) -> None:
        self.url = url

    def open(self) -> Any:
        """Connects."""

    def enqueue(self, stamp: int) -> Any:
        """Enqueues one job."""
        raise NotImplementedError

    def enqueue_many(self, count: int) -> Any:
        """Enqueues several at once."""
        raise NotImplementedError

    def work(self) -> Any:
        """Runs a worker; the tally ends the process."""
        raise NotImplementedError


async def _call(found: Any) -> None:
    if inspect.isawaitable(found):
        await found


def _wait_for_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


async def _enqueue(peer: Peer, operation: str, count: int) -> None:
    start = time.monotonic_ns()
    if operation == "enqueue-many":
        for _ in range(count // DEPTH):
            await _call(peer.enqueue_many(DEPTH))
    else:
        for _ in range(count):
            if operation == "add":
                time.sleep(PACE)  # noqa: ASYNC251 (nothing else is to run meanwhile)
            await _call(peer.enqueue(time.monotonic_ns()))
    write({"start": start, "end": time.monotonic_ns()})


async def _run(peer: Peer, operation: str, count: int) -> None:
    await _call(peer.open())
    _wait_for_start()
    if operation not in {"drain", "wait"}:
        await _enqueue(peer, operation, count)
    else:
        await _call(peer.work())
    os._exit(0)


def main(peer_type: type[Peer]) -> None:
    """The command line."""
    url, operation, number = sys.argv[1:]
    peer = peer_type(url)
    if operation != "add" and operation not in peer.can:
        _wait_for_start()
        write({"cannot": operation})
        return
    TALLY.left = int(number)
    TALLY.waits = operation == "wait"
    if inspect.iscoroutinefunction(peer.work) or operation not in {"drain", "wait"}:
        asyncio.run(_run(peer, operation, int(number)))
    else:  # a worker that blocks wants no event loop around it
        peer.open()
        _wait_for_start()
        peer.work()
