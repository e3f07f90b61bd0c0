"""What stands in TASKS for a backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

import cwist_jq
from cwist_jq.contrib.django.tasks_api import DEFAULT_TASK_QUEUE_NAME
from cwist_jq.errors import InvalidParam
from cwist_jq.queue import MAX_RETRIES

__all__ = ["Settings"]

_TIMEOUTS = ("connect_timeout", "operation_timeout")
_NAMES = ("url", *_TIMEOUTS, "queue")


class Settings:
    """The settings of one backend.

    Attributes:
        url: Where the server is; None stands for CWIST_JQ_URL.
        timeouts: What of them connect() is to be told.
        queues: The names of its queues, in the order of the settings; empty when any will do.
        queue: Options of Connection.queue(), for all of them.
    """

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        """Reads them.

        Raises:
            ImproperlyConfigured: There is an option that nobody knows, or one of the wrong kind.
        """
        options = params.get("OPTIONS", {})
        unknown = sorted(set(options) - set(_NAMES))
        if unknown:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]['OPTIONS'] has {', '.join(unknown)}; "
                f"allowed: {', '.join(_NAMES)}"
            )
        self.alias = alias
        self.url: str | None = options.get("url")
        self.timeouts = {name: options[name] for name in _TIMEOUTS if name in options}
        self.queues: list[str] = list(params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME]))
        self.queue = options.get("queue", {})
        if not isinstance(self.queue, Mapping):
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]['OPTIONS']['queue'] is a {type(self.queue).__name__}; "
                "allowed: a dict with options of Connection.queue()"
            )

    @property
    def max_retries(self) -> int:
        """How often a job is delivered, the first time included."""
        return int(self.queue.get("max_retries", MAX_RETRIES))

    def wrong(self) -> list[str]:
        """What a queue would not take; no server is asked."""
        with cwist_jq.connect("memory://") as conn:
            names = self.queues or [DEFAULT_TASK_QUEUE_NAME]
            return [text for name in names if (text := self._wrong(conn, name))]

    def _wrong(self, conn: cwist_jq.Connection, name: str) -> str | None:
        try:
            conn.queue(name, **self.queue).close()
        except (InvalidParam, TypeError) as error:
            return f"TASKS[{self.alias!r}], queue {name}: {error}"
        return None
