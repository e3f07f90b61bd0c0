"""The connections and queues that tasks are enqueued through: one for all threads of the process.

Django has a backend for each thread, and servers for development a thread for each request. Any
thread may use a connection, so they share one, which is open until the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any

import cwist_jq
from cwist_jq.contrib.django.settings import Settings

__all__ = ["queue"]

_lock = threading.Lock()
_connections: dict[object, cwist_jq.Connection] = {}
_queues: dict[object, cwist_jq.Queue] = {}


def _key(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(options.items()))


def queue(settings: Settings, name: str) -> cwist_jq.Queue:
    """The queue of this name, opened when it is asked for first.

    Raises:
        Error: As of connect() and Connection.queue().
    """
    place = (
        settings.url or os.environ.get(cwist_jq.connection.URL_VARIABLE),
        _key(settings.timeouts),
    )
    key = (place, name, _key(settings.queue))
    found = _queues.get(key)
    if found is not None:
        return found
    with _lock:
        if place not in _connections:
            _connections[place] = cwist_jq.connect(settings.url, **settings.timeouts)
        if key not in _queues:
            _queues[key] = _connections[place].queue(name, **settings.queue)
        return _queues[key]


def _close() -> None:
    while _connections:
        _connections.popitem()[1].close()
    _queues.clear()


def _begin_anew() -> None:
    """A forked child has connections of its own, and its lock may be held by nobody."""
    global _lock  # noqa: PLW0603 (one for the process)
    _lock = threading.Lock()
    _close()


atexit.register(_close)
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin_anew)
