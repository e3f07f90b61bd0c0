"""Tasks of Django as jobs: what is stored, and what is refused."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone

import cwist_jq
from cwist_jq.contrib.django import DurableBackend, connections
from cwist_jq.contrib.django.tasks_api import InvalidTask, TaskResultStatus, task_backends
from tests import servers
from tests.contrib.on_django import tasks
from tests.waiting import PATIENCE

PATH = "tests.contrib.on_django.tasks"


def claim(url: str, name: str = "default") -> cwist_jq.Job | None:
    """The next job of a queue; it is acked."""
    with cwist_jq.connect(url) as conn:
        job = conn.queue(name).claim(timeout=0)
        if job is not None:
            job.ack()
        return job


def stats(url: str) -> cwist_jq.Stats:
    with cwist_jq.connect(url) as conn:
        return conn.queue("default").stats()


def test_a_task_is_a_job(store: str) -> None:
    before = timezone.now()
    result = tasks.note.enqueue(1, ("a", None), name="ü")
    assert result.status == TaskResultStatus.READY
    assert (result.args, result.kwargs, result.backend) == (
        [1, ["a", None]],
        {"name": "ü"},
        "default",
    )
    assert result.attempts == 0
    job = claim(store)
    assert job is not None
    assert (job.id, job.type) == (result.id, f"{PATH}.note")
    said = json.loads(job.payload)
    assert before <= dt.datetime.fromisoformat(said.pop("enqueued_at")) <= timezone.now()
    assert said == {"args": [1, ["a", None]], "kwargs": {"name": "ü"}, "backend": "default"}
    assert job.headers == {}


def test_aenqueue(store: str, signals: list[Any]) -> None:
    async def many() -> list[Any]:
        return list(await asyncio.gather(*(tasks.note.aenqueue(n) for n in range(20))))

    results = asyncio.run(many())
    assert stats(store).ready == 20
    assert len({result.id for result in results}) == 20
    assert [name for name, _ in signals] == ["task_enqueued READY"] * 20


def test_aenqueue_holds_up_no_other_code(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's synchronous code shares one thread, which is not the one that waits for a server."""
    begun, go = threading.Event(), threading.Event()
    enqueue = cwist_jq.Queue.enqueue

    def slow(*arguments: Any, **options: Any) -> str:
        begun.set()
        assert go.wait(PATIENCE)
        return enqueue(*arguments, **options)

    async def both() -> Any:
        stored = asyncio.ensure_future(tasks.note.aenqueue())
        await asyncio.to_thread(begun.wait, PATIENCE)
        await asyncio.wait_for(sync_to_async(go.set)(), PATIENCE / 2)
        return await stored

    monkeypatch.setattr(cwist_jq.Queue, "enqueue", slow)
    assert asyncio.run(both()).id
    assert stats(store).ready == 1


def test_a_receiver_that_fails_fails_no_enqueue(store: str, signals: list[Any]) -> None:
    """The caller would store the job again."""
    result = tasks.note.enqueue()
    assert signals == [("task_enqueued READY", result)]
    assert stats(store).ready == 1


def test_run_after(store: str) -> None:
    """One in the past is ready now."""
    tasks.note.using(run_after=timezone.now() + dt.timedelta(hours=1)).enqueue()
    tasks.note.using(run_after=timezone.now() - dt.timedelta(hours=1)).enqueue("now")
    found = stats(store)
    assert (found.ready, found.delayed) == (1, 1)
    job = claim(store)
    assert job is not None
    assert json.loads(job.payload)["args"] == ["now"]


def test_run_after_comes(store: str) -> None:
    tasks.note.using(run_after=timezone.now() + dt.timedelta(seconds=0.3)).enqueue()
    with cwist_jq.connect(store) as conn:
        queue = conn.queue("default")
        assert queue.claim(timeout=0) is None
        job = queue.claim(timeout=10)
        assert job is not None
        job.ack()


@pytest.mark.engine("nats")
def test_run_after_where_the_server_has_none(
    url: str, queue_name: str, use: Callable[..., None]
) -> None:
    """A queue with max_length has no delayed jobs there: told by Django's own error."""
    use(url, queues=(queue_name,), max_length=10)
    task = tasks.note.using(queue_name=queue_name)
    with pytest.raises(InvalidTask, match="max_length"):
        task.using(run_after=timezone.now() + dt.timedelta(hours=1)).enqueue()
    task.enqueue()
    assert claim(url, queue_name) is not None


def test_what_the_backend_cannot_do(store: str) -> None:
    with pytest.raises(InvalidTask, match="priority"):
        tasks.note.using(priority=1)
    with pytest.raises(InvalidTask, match="Queue 'other'"):
        tasks.note.using(queue_name="other")
    with pytest.raises(InvalidTask, match="delay"):
        tasks.note.using(run_after=timezone.now() + dt.timedelta(days=400)).enqueue()
    result = tasks.note.enqueue()
    with pytest.raises(NotImplementedError):
        result.refresh()
    with pytest.raises(NotImplementedError):
        tasks.note.get_result(result.id)
    with pytest.raises(NotImplementedError):
        asyncio.run(result.arefresh())
    assert stats(store).ready == 1


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), float("inf")])
def test_arguments_are_json(store: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        tasks.note.enqueue(value)
    assert stats(store).ready == 0


def test_queues_and_their_options(store: str, use: Callable[..., None]) -> None:
    use(store, max_length=1)
    tasks.note.using(queue_name="emails").enqueue("to emails")
    tasks.note.enqueue()
    with pytest.raises(cwist_jq.QueueFull):
        tasks.note.enqueue()
    assert claim(store, "emails") is not None


def test_dedupe_key_and_headers(store: str) -> None:
    task = tasks.note.using(dedupe_key="invoice-7", headers={"traceparent": "00-1"})
    assert task.using(queue_name="default") == task
    hash(task)
    first = task.enqueue(1)
    assert task.enqueue(2).id == first.id
    job = claim(store)
    assert job is not None
    assert (job.id, dict(job.headers)) == (first.id, {"traceparent": "00-1"})
    assert claim(store) is None
    with pytest.raises(InvalidTask, match="dedupe_key"):
        tasks.note.using(dedupe_key="k" * 256).enqueue()


def test_on_commit(store: str) -> None:
    """As Django says it: a job is stored when the transaction is committed, or never."""
    with transaction.atomic():
        transaction.on_commit(partial(tasks.note.enqueue, "committed"))
        assert stats(store).ready == 0
    assert stats(store).ready == 1

    def undone() -> None:
        with transaction.atomic():
            transaction.on_commit(partial(tasks.note.enqueue, "rolled back"))
            raise ValueError("undo")

    with pytest.raises(ValueError, match="undo"):
        undone()
    assert stats(store).ready == 1


def test_threads_share_a_connection(store: str) -> None:
    """Django has a backend for each thread; so many connections would be a leak."""
    before = len(connections._connections)

    def enqueue() -> None:
        assert task_backends["default"] is not backend
        tasks.note.enqueue()

    backend = task_backends["default"]
    threads = [threading.Thread(target=enqueue) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stats(store).ready == 8
    assert len(connections._connections) == before + 1


FORKS = """
import os
import django
from django.conf import settings
django.setup()
name = os.environ["QUEUE"]
settings.TASKS["default"]["QUEUES"] += [name]
from tests.contrib.on_django import tasks
note = tasks.note.using(queue_name=name)
note.enqueue()
child = os.fork()
note.enqueue()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.engine("redis")
def test_a_forked_child_connects_by_itself(
    url: str, queue_name: str, conn: cwist_jq.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As servers do that load the program before they fork. Nothing is left open at the end."""
    monkeypatch.setenv("CWIST_JQ_URL", url)
    monkeypatch.setenv("QUEUE", queue_name)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", FORKS],
        cwd=servers.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning" not in done.stderr
    assert conn.queue(queue_name).stats().ready == 3


def test_checks(store: str, use: Callable[..., None]) -> None:
    assert checks.run_checks() == []
    use(store, visibility_timeout=0)
    (found, other) = checks.run_checks()
    assert (found.id, found.level) == ("cwist_jq.E001", checks.ERROR)
    assert "queue default: visibility_timeout" in found.msg
    assert "queue emails" in other.msg
    use(store, colour="red")
    assert "colour" in checks.run_checks()[0].msg
    use(store, queues=("a b",))
    assert "name" in checks.run_checks()[0].msg


def test_options_that_nobody_knows() -> None:
    with pytest.raises(ImproperlyConfigured, match="colour; allowed: url"):
        DurableBackend("default", {"OPTIONS": {"colour": "red"}})
    with pytest.raises(ImproperlyConfigured, match=r"queue.* is a str"):
        DurableBackend("default", {"OPTIONS": {"queue": "default"}})
