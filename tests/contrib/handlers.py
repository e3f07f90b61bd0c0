"""Handlers that end as their job says; child processes import them from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cwist_jq.worker import Middleware, Reject, Retry, Snooze, Worker
from cwist_jq.worker import worker as _worker

#: The kinds of places where handlers run.
PLACES = ["thread", "loop", "process"]


def finish(data: Any) -> None:
    if data == "fail":
        raise ValueError("no such luck")
    if data == "retry":
        raise Retry(0, "busy")
    if data == "reject":
        raise Reject("no such customer")
    if data == "snooze":
        raise Snooze(3600)


async def finish_async(data: Any) -> None:
    finish(data)


def worker_at(place: str, queue: _worker.Named, conn: Any, *middleware: Middleware) -> Worker:
    """A worker whose handlers for all types run there."""
    made = Worker(conn, queue, processes=int(place == "process"), middleware=middleware)
    function: Callable[[Any], Any] = finish_async if place == "loop" else finish
    made.handler(function)
    return made
