"""A task of Django with what a durable queue can do beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cwist_jq.contrib.django.tasks_api import Task

__all__ = ["DurableTask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableTask(Task):
    """What @task makes for a DurableBackend.

    Example:
        send_invoice.using(dedupe_key=f"invoice-{number}").enqueue(number)

    Attributes:
        dedupe_key: At most one job with this key lives, as for Queue.enqueue(). The result of a
            duplicate has the id of the first.
        headers: Texts that go to the worker beside the arguments, as for Queue.enqueue().
    """

    dedupe_key: str | None = None
    headers: Mapping[str, str] | None = field(default=None, hash=False)

    def using(
        self,
        *,
        dedupe_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> DurableTask:
        """Makes a task that differs in this. What is None stays as it is.

        Args:
            dedupe_key: 1 to 255 bytes of UTF-8 without control characters.
            headers: As for Queue.enqueue(); they replace those that the task had.
            changes: What Django has: queue_name, run_after, backend, priority.

        Raises:
            InvalidTask: The backend cannot do it.
        """
        if dedupe_key is not None:
            changes["dedupe_key"] = dedupe_key
        if headers is not None:
            changes["headers"] = dict(headers)
        return replace(self, **{name: one for name, one in changes.items() if one is not None})
