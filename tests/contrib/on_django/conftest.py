"""Sets Django up, once for the process, and gives each test a store of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import django
import pytest

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.contrib.on_django.settings"
django.setup()

_numbers = itertools.count(1)


@pytest.fixture
def use() -> Iterator[Callable[..., None]]:
    """Changes TASKS for the test: use(url, **options of the queues)."""
    from django.test import override_settings

    from tests.contrib.on_django.settings import BACKEND

    made: list[Any] = []

    def change(url: str, queues: tuple[str, ...] = ("default", "emails"), **queue: Any) -> None:
        options = {"url": url, "queue": queue}
        made.append(
            override_settings(
                TASKS={"default": {"BACKEND": BACKEND, "QUEUES": queues, "OPTIONS": options}}
            )
        )
        made[-1].enable()

    yield change
    for one in reversed(made):
        one.disable()


@pytest.fixture
def store(use: Callable[..., None]) -> str:
    """The URL of a store in memory that TASKS names; its jobs are delivered twice at most."""
    url = f"memory://django-{next(_numbers)}"
    use(url, max_retries=2)
    return url


@pytest.fixture
def seen() -> list[Any]:
    """What the tasks of the project note here."""
    from tests.contrib.on_django import tasks

    tasks.seen.clear()
    return tasks.seen


@pytest.fixture
def signals() -> Iterator[list[tuple[str, Any]]]:
    """The signals that are sent, and their results' status at that moment."""
    from cwist_jq.contrib.django import tasks_api

    told: list[tuple[str, Any]] = []
    receivers = {}
    for name in ("task_enqueued", "task_started", "task_finished"):

        def receive(task_result: Any, *, name: str = name, **_: Any) -> None:
            told.append((f"{name} {task_result.status}", task_result))
            raise ValueError("a receiver that fails")

        receivers[name] = receive
        getattr(tasks_api, name).connect(receive, weak=False)
    yield told
    for name, receive in receivers.items():
        getattr(tasks_api, name).disconnect(receive)
