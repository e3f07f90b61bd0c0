"""What runs in a child process: one job at a time, as the parent sends them.

What goes over the pipe is JSON and raw payloads. A message to the child is a line of JSON and the
payload behind it; an empty one says that there are no more. The child answers each job with STARTED
and then with a line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import traceback
from queue import SimpleQueue
from types import MappingProxyType

from cwist_jq.worker.outcome import NACK, Outcome, outcome_of
from cwist_jq.worker.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.connection import Connection
    from typing import Any, NoReturn

    from cwist_jq.job import Job

    Addresses = Sequence[tuple[tuple[str, ...], str, str]]

__all__ = ["READY", "STARTED", "RemoteJob", "main", "packed", "unpacked"]

READY = b"ready"
STARTED = b"started"
TRACE_MAX = 8192


class RemoteJob:
    """A job as a handler in a child process sees it. The parent process holds and settles it.

    Attributes:
        payload: The bytes that were enqueued.
        type: The type tag, or None.
        id: The id of the job.
        attempts: How often it was delivered, this time included.
        headers: The headers of the job.
        queue: The name of its queue.
    """

    __slots__ = ("attempts", "headers", "id", "payload", "queue", "type")

    def __init__(self, facts: Mapping[str, Any], payload: bytes) -> None:
        """Made from a message."""
        self.payload = payload
        self.type: str | None = facts["type"]
        self.id: str = facts["id"]
        self.attempts: int = facts["attempts"]
        self.headers: Mapping[str, str] = MappingProxyType(facts["headers"])
        self.queue: str = facts["queue"]

    def __repr__(self) -> str:
        return (
            f"<cwist_jq.worker.RemoteJob {self.id!r} type={self.type!r} attempts={self.attempts}>"
        )


def packed(job: Job) -> bytes:
    """A job as a message."""
    facts = {
        "id": job.id,
        "type": job.type,
        "attempts": job.attempts,
        "queue": job.queue,
        "headers": dict(job.headers),
    }
    return b"%b\n%b" % (json.dumps(facts).encode(), job.payload)


def unpacked(message: bytes) -> RemoteJob:
    """The job in a message."""
    facts, _, payload = message.partition(b"\n")
    return RemoteJob(json.loads(facts), payload)


def main(link: Connection, addresses: Addresses) -> None:
    """Runs jobs until the parent has no more. When the parent is gone, so is this process."""
    _leave_signals_to_the_parent()
    registry = _registry(addresses)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(link, jobs), daemon=True).start()
    link.send_bytes(READY)
    while message := jobs.get():
        link.send_bytes(STARTED)
        link.send_bytes(_answer(registry, unpacked(message)))
    sys.stdout.flush()


def _leave_signals_to_the_parent() -> None:
    """A Ctrl-C reaches all processes of a terminal, and the parent decides what it means.

    A function that does nothing, rather than SIG_IGN, which programs that a handler starts would
    inherit. The parent has blocked both until here.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def _registry(addresses: Addresses) -> Registry:
    """The handlers, from the modules where they are."""
    registry = Registry()
    for types, module, name in addresses:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        registry.add(found, types)
    return registry


def _listen(link: Connection, jobs: SimpleQueue[bytes]) -> None:
    """A thread: takes what the parent sends, also while a handler runs."""
    try:
        while message := link.recv_bytes():
            jobs.put(message)
    except (EOFError, OSError):
        _end_at_once()
    jobs.put(b"")


def _end_at_once() -> NoReturn:
    """The parent is gone: somebody else will run the job."""
    os._exit(1)


def _answer(registry: Registry, job: RemoteJob) -> bytes:
    """Runs a handler; what became of the job as a message."""
    handler = registry.find(job.type)
    try:
        if handler is None:
            outcome, trace = Outcome(NACK, None, f"no handler for jobs of type {job.type}"), ""
        else:
            handler.call(job)
            return b"{}"
    except BaseException as error:  # noqa: BLE001 (a handler that calls sys.exit() has failed, too)
        outcome = outcome_of(error)
        trace = traceback.format_exc()[-TRACE_MAX:]
    told = {"end": outcome.end, "delay": outcome.delay, "reason": outcome.reason, "trace": trace}
    return json.dumps(told).encode()
