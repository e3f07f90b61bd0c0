"""What a job holds: its type is the path of the task's function, its payload the arguments."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils.dateparse import parse_datetime

from cwist_jq.contrib.django.tasks_api import DEFAULT_TASK_BACKEND_ALIAS, normalize_json
from cwist_jq.worker import Reject
from cwist_jq.worker.codec import decode, encode

__all__ = ["Call"]


class Call:
    """The call of a task's function.

    Attributes:
        args: Its arguments, as JSON has them.
        kwargs: Those by name.
        backend: The alias of the backend in TASKS.
        enqueued_at: When that was, by the clock of who did it; None when it is not said.
    """

    def __init__(
        self,
        args: list[Any],
        kwargs: dict[str, Any],
        backend: str,
        enqueued_at: dt.datetime | None,
    ) -> None:
        """Keeps all."""
        self.args = args
        self.kwargs = kwargs
        self.backend = backend
        self.enqueued_at = enqueued_at

    def written(self) -> bytes:
        """The payload.

        Raises:
            TypeError, ValueError: An argument has no JSON.
        """
        said = {
            "args": normalize_json(self.args),
            "kwargs": normalize_json(self.kwargs),
            "backend": self.backend,
        }
        if self.enqueued_at is not None:
            said["enqueued_at"] = self.enqueued_at.isoformat()
        return encode(said)

    @classmethod
    def read(cls, payload: bytes) -> Call:
        """The call in a payload.

        All but `args` may be left out, so that other programs can write one easily.

        Raises:
            Reject: It is none, and will never be one.
        """
        try:
            said = decode(payload)
            args, kwargs = said["args"], said.get("kwargs", {})
            backend = said.get("backend", DEFAULT_TASK_BACKEND_ALIAS)
            enqueued_at = said.get("enqueued_at")
            moment = None if enqueued_at is None else parse_datetime(enqueued_at)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Reject(f"the payload is no call of a task: {error!r}") from error
        if not (isinstance(args, list) and isinstance(kwargs, dict) and isinstance(backend, str)):
            raise Reject("the payload is no call of a task: args, kwargs or backend is wrong")
        return cls(args, kwargs, backend, moment)
