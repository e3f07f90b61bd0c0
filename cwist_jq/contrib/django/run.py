"""Runs the task that a job is about."""

from __future__ import annotations

import functools
import os
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django
from django.apps import apps
from django.db import close_old_connections, reset_queries
from django.utils import timezone
from django.utils.module_loading import import_string

from cwist_jq.contrib.django.backend import DurableBackend
from cwist_jq.contrib.django.call import Call
from cwist_jq.contrib.django.task import DurableTask
from cwist_jq.contrib.django.tasks_api import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_backends,
    task_finished,
    task_started,
)
from cwist_jq.worker import Reject, Snooze

__all__ = ["run_job"]


def run_job(payload: bytes, job: Any) -> None:
    """The handler, in a thread or in a child process. What the task raises goes on to the worker.

    It raises the exceptions of cwist_jq.worker to decide about its job; anything else is a failure,
    which is tried again as the queue says.
    """
    if not apps.ready:  # a child process begins here
        django.setup()
    with _database():
        call = Call.read(payload)
        backend = task_backends[call.backend]
        if not isinstance(backend, DurableBackend):
            raise Reject(f"TASKS[{call.backend!r}] is no DurableBackend")
        _run(_result(call, job), backend)


@contextmanager
def _database() -> Iterator[None]:
    """As around a request: connections that broke or are too old are closed, before and after."""
    reset_queries()
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


def _task(job: Any, backend: str) -> Task:
    """The task of a job. A newer program may have it, so that a missing one is a failure."""
    found = import_string(job.type or "")
    if not isinstance(found, Task):
        raise TypeError(f"{job.type} is a {type(found).__name__}, not a task")
    if isinstance(found, DurableTask):
        return found.using(queue_name=job.queue, backend=backend, headers=job.headers)
    return found.using(queue_name=job.queue, backend=backend)


def _result(call: Call, job: Any) -> TaskResult:
    """What the task and the receivers of signals get to see."""
    now = timezone.now()
    return TaskResult(
        task=_task(job, call.backend),
        id=job.id,
        status=TaskResultStatus.RUNNING,
        enqueued_at=call.enqueued_at,
        started_at=now,
        finished_at=None,
        last_attempted_at=now,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        errors=[],
        # Who had it before is not kept, but how many.
        worker_ids=[""] * (job.attempts - 1) + [_worker_id()],
    )


@functools.cache
def _host() -> str:
    return socket.gethostname()


def _worker_id() -> str:
    return f"{_host()}-{os.getpid()}"


def _run(result: TaskResult, backend: DurableBackend) -> None:
    # What a receiver raises is logged: it must not make a task that is done run again.
    sender = type(backend)
    task_started.send_robust(sender, task_result=result)
    task = result.task
    context = (TaskContext(task_result=result),) if task.takes_context else ()
    try:
        returned = task.call(*context, *result.args, **result.kwargs)
    except BaseException as error:
        if _is_last(error, result.attempts, backend):
            _finish(result, TaskResultStatus.FAILED)
            result.errors.append(_described(error))
            task_finished.send_robust(sender, task_result=result)
        raise
    _finish(result, TaskResultStatus.SUCCESSFUL)
    object.__setattr__(result, "_return_value", returned)
    task_finished.send_robust(sender, task_result=result)


def _is_last(error: BaseException, attempts: int, backend: DurableBackend) -> bool:
    """Whether the job is a dead letter now."""
    if isinstance(error, Snooze):
        return False
    return isinstance(error, Reject) or attempts >= backend.settings.max_retries


def _finish(result: TaskResult, status: TaskResultStatus) -> None:
    """Sets what has changed; Django's class is frozen, and its own backends do it like this."""
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", timezone.now())


def _described(error: BaseException) -> TaskError:
    kind = type(error)
    return TaskError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
        traceback="".join(traceback.format_exception(error)),
    )
