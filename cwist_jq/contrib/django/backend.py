"""The backend for Django's setting TASKS: tasks become jobs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.core import checks
from django.utils import timezone

from cwist_jq.contrib.django import connections
from cwist_jq.contrib.django.call import Call
from cwist_jq.contrib.django.settings import Settings
from cwist_jq.contrib.django.task import DurableTask
from cwist_jq.contrib.django.tasks_api import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultStatus,
    task_enqueued,
)
from cwist_jq.errors import InvalidParam, Unsupported

__all__ = ["DurableBackend"]


class DurableBackend(BaseTaskBackend):
    """Stores tasks as jobs of durable queues; `manage.py cwist_jq_worker` runs them, at least once.

    Results are not kept: TaskResult.refresh() and get_result() raise NotImplementedError. A
    priority is refused with InvalidTask: use several queues.

    Example:
        TASKS = {
            "default": {
                "BACKEND": "cwist_jq.contrib.django.DurableBackend",
                "QUEUES": ["default", "emails"],
                "OPTIONS": {
                    "url": "redis://127.0.0.1:6379",
                    "queue": {"visibility_timeout": 60, "max_retries": 8, "retry_delay": 10},
                },
            }
        }

    OPTIONS has `url` (else that of CWIST_JQ_URL), `connect_timeout` and `operation_timeout` of the
    enqueues as for connect(), and `queue`, the options of Connection.queue() for all queues.
    """

    task_class = DurableTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = False
    supports_priority = False

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        """Reads the settings; a connection is opened by the first enqueue.

        Raises:
            ImproperlyConfigured: OPTIONS has what nobody knows.
        """
        super().__init__(alias, params)
        self.settings = Settings(alias, params)

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Stores a job; Django's Task.enqueue() calls this.

        Inside a transaction the job is stored at once, whether or not it is committed: see
        docs/django.md.

        Returns:
            A result with the id of the job, of the status READY.

        Raises:
            InvalidTask: This backend, or the server, cannot do what the task asks for.
            TypeError, ValueError: An argument has no JSON.
            Error: As of connect() and Queue.enqueue().
        """
        result = self._store(task, args, kwargs)
        # What a receiver raises is logged: the job is stored, and a caller would store it again.
        task_enqueued.send_robust(type(self), task_result=result)
        return result

    async def aenqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult:
        """As enqueue(). It waits for the server in a thread that holds up no other code.

        A task that is cancelled meanwhile may have stored the job.
        """
        result = await sync_to_async(self._store, thread_sensitive=False)(task, args, kwargs)
        await task_enqueued.asend_robust(type(self), task_result=result)
        return result

    def _store(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        self.validate_task(task)
        now = timezone.now()
        call = Call(list(args), dict(kwargs), self.alias, now)
        payload = call.written()
        queue = connections.queue(self.settings, task.queue_name)
        try:
            job_id = queue.enqueue(
                payload,
                type=task.module_path,
                delay=_delay(task.run_after),
                # A task of another class may come from Task.using(backend=...).
                dedupe_key=getattr(task, "dedupe_key", None),
                headers=getattr(task, "headers", None),
            )
        except (InvalidParam, Unsupported) as error:
            raise InvalidTask(str(error)) from error
        return TaskResult(
            task=task,
            id=str(job_id),
            status=TaskResultStatus.READY,
            enqueued_at=now,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=call.args,
            kwargs=call.kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def check(self, **kwargs: Any) -> Iterator[checks.CheckMessage]:  # noqa: ARG002 (Django's)
        """For `manage.py check`: what a queue would not take. No server is asked."""
        for text in self.settings.wrong():
            yield checks.Error(text, id="cwist_jq.E001")


def _delay(run_after: dt.datetime | None) -> dt.timedelta | int:
    """How long from now. What has no zone is local time, which Django sets to its TIME_ZONE."""
    if run_after is None:
        return 0
    return max(run_after - dt.datetime.now(run_after.tzinfo), dt.timedelta())
