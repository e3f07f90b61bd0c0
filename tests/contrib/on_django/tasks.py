"""The tasks of the project. What they do is in `seen`, or in a file that the call names."""

from __future__ import annotations

import os
import threading
from typing import Any

from django.apps import apps
from django.db import connection

from cwist_jq.contrib.django.tasks_api import task
from cwist_jq.worker import Reject, Snooze

seen: list[Any] = []


@task
def note(*args: Any, **kwargs: Any) -> str:
    seen.append((args, kwargs))
    return "noted"


@task(takes_context=True)
def look(context: Any) -> None:
    seen.append(context.task_result)


@task
async def asynchronous(word: str) -> None:
    seen.append(word)


@task(takes_context=True)
def fail(context: Any, until: int) -> None:
    seen.append(context.attempt)
    if context.attempt < until:
        raise ValueError("this task fails")


@task
def reject() -> None:
    raise Reject("never")


@task(takes_context=True)
def snooze(context: Any) -> None:
    seen.append(context.attempt)
    if len(seen) < 2:
        raise Snooze(0)


@task
def query() -> None:
    seen.append((threading.get_ident(), connection.connection is None))
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@task
def write(path: str, word: str) -> None:
    apps.check_models_ready()  # in a child process, too
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{word} {os.getpid()}\n")


def no_task() -> None:
    """A function that nobody made a task."""
