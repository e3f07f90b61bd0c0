"""A worker for the queues of a backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cwist_jq.contrib.django.backend import DurableBackend
from cwist_jq.contrib.django.run import run_job
from cwist_jq.contrib.django.tasks_api import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_QUEUE_NAME,
    task_backends,
)
from cwist_jq.errors import InvalidParam
from cwist_jq.worker import Worker

__all__ = ["make_worker"]


def make_worker(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    queues: Iterable[str] | Mapping[str, int] | None = None,
    **options: Any,
) -> Worker:
    """Makes what `manage.py cwist_jq_worker` runs, for a program that runs it itself.

    Example:
        django.setup()
        make_worker(concurrency=4, middleware=[Timing()]).run()

    Args:
        backend: Its alias in TASKS.
        queues: Names, the most urgent first; or weights by name. None: all QUEUES of the backend.
        options: As for cwist_jq.worker.Worker: concurrency, processes, shutdown_timeout,
            middleware.

    Returns:
        The worker. It opens a connection of its own when it runs.

    Raises:
        InvalidParam: The backend is of another kind, or an argument is wrong.
        InvalidTaskBackend: There is no such backend.
    """
    made = task_backends[backend]
    if not isinstance(made, DurableBackend):
        raise InvalidParam(f"backend {backend} is a {type(made).__name__}, not a DurableBackend")
    settings = made.settings
    chosen = queues or settings.queues or [DEFAULT_TASK_QUEUE_NAME]
    if not isinstance(chosen, Mapping):
        chosen = list(chosen)
    for name in chosen:
        if settings.queues and name not in settings.queues:
            raise InvalidParam(
                f"queue {name} is none of backend {backend}; allowed: {', '.join(settings.queues)}"
            )
    worker = Worker(
        settings.url,
        chosen,
        queue_options=settings.queue,
        **options,
    )
    worker.handler(run_job)
    return worker
