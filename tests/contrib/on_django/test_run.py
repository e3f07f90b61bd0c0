"""A worker that runs tasks of Django."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

import cwist_jq
from cwist_jq.contrib.django import make_worker
from cwist_jq.contrib.django.tasks_api import TaskResultStatus
from tests.contrib.on_django import tasks
from tests.waiting import eventually
from tests.worker.helpers import running


def run_all(url: str, *queues: str) -> list[cwist_jq.DeadLetter]:
    """Runs a worker until its queues are empty; the dead letters of the first."""
    names = queues or ("default",)
    with cwist_jq.connect(url) as conn:
        opened = [conn.queue(name) for name in names]

        def done() -> bool:
            found = [queue.stats() for queue in opened]
            return not any(one.ready + one.claimed + one.delayed for one in found)

        with running(make_worker(queues=names, concurrency=1)):
            eventually(done)
        return list(opened[0].dead)


def test_arguments(store: str, seen: list[Any]) -> None:
    tasks.note.enqueue(1, [2], word="ü")
    tasks.asynchronous.enqueue("async")
    tasks.note.using(queue_name="emails").enqueue("other queue")
    assert run_all(store, "default", "emails") == []
    assert seen == [((1, [2]), {"word": "ü"}), "async", (("other queue",), {})]


def test_what_the_task_is_told(store: str, seen: list[Any]) -> None:
    enqueued = tasks.look.using(queue_name="emails", headers={"traceparent": "00-1"}).enqueue()
    run_all(store, "emails")
    (result,) = seen
    assert result.id == enqueued.id
    assert result.task.func is tasks.look.func
    assert (result.task.queue_name, result.task.headers) == ("emails", {"traceparent": "00-1"})
    assert result.enqueued_at == enqueued.enqueued_at <= result.started_at
    assert result.attempts == 1


def test_a_failure_is_tried_again(store: str, seen: list[Any], signals: list[Any]) -> None:
    """task_finished is sent once: when the task is done."""
    tasks.fail.enqueue(2)
    assert run_all(store) == []
    assert seen == [1, 2]
    assert [name for name, _ in signals] == [
        "task_enqueued READY",
        "task_started RUNNING",
        "task_started RUNNING",
        "task_finished SUCCESSFUL",
    ]


def test_the_last_failure(store: str, seen: list[Any], signals: list[Any]) -> None:
    tasks.fail.enqueue(9)
    (letter,) = run_all(store)
    assert seen == [1, 2]
    assert letter.reason == "ValueError: this task fails"
    finished = [result for name, result in signals if name.startswith("task_finished")]
    assert [result.status for result in finished] == [TaskResultStatus.FAILED]
    assert finished[0].finished_at >= finished[0].started_at
    (error,) = finished[0].errors
    assert error.exception_class is ValueError
    assert "in fail" in error.traceback


def test_what_a_task_decides(store: str, seen: list[Any], signals: list[Any]) -> None:
    tasks.reject.enqueue()
    tasks.snooze.enqueue()
    (letter,) = run_all(store)
    assert (letter.reason, letter.attempts) == ("never", 1)
    assert seen == [1, 1]
    assert [name for name, _ in signals if name.startswith("task_finished")] == [
        "task_finished FAILED",
        "task_finished SUCCESSFUL",
    ]


def test_a_snooze_on_the_last_attempt(
    store: str, use: Callable[..., None], seen: list[Any], signals: list[Any]
) -> None:
    """It spends none, so the task has not failed."""
    use(store, max_retries=1)
    tasks.snooze.enqueue()
    assert run_all(store) == []
    assert [name for name, _ in signals if name.startswith("task_finished")] == [
        "task_finished SUCCESSFUL"
    ]


def test_a_receiver_that_fails_makes_nothing_run_again(
    store: str, seen: list[Any], signals: list[Any]
) -> None:
    tasks.note.enqueue()
    assert run_all(store) == []
    assert len(seen) == 1
    assert signals[-1][0] == "task_finished SUCCESSFUL"
    assert signals[-1][1].return_value == "noted"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tests.contrib.on_django.tasks.gone", "gone"),
        ("tests.contrib.on_django.tasks.no_task", "a function, not a task"),
        (None, "module path"),
    ],
)
def test_a_task_that_is_not_there(store: str, path: str | None, reason: str) -> None:
    """It fails as often as any: a newer worker may know it."""
    with cwist_jq.connect(store) as conn:
        conn.queue("default").enqueue(b'{"args": []}', type=path)
        (letter,) = run_all(store)
    assert letter.attempts == 2
    assert letter.reason is not None
    assert reason in letter.reason


@pytest.mark.parametrize(
    "payload", [b"", b"\xff", b"[]", b"{}", b'{"args": 1}', b'{"args": [], "enqueued_at": "x y"}x']
)
def test_a_payload_that_is_no_call(store: str, payload: bytes) -> None:
    """It is a dead letter at once."""
    with cwist_jq.connect(store) as conn:
        conn.queue("default").enqueue(payload, type=tasks.note.module_path)
        (letter,) = run_all(store)
    assert letter.attempts == 1
    assert letter.reason is not None
    assert "no call of a task" in letter.reason


def test_a_job_of_another_program(store: str, seen: list[Any]) -> None:
    """The rest of the payload may be left out."""
    with cwist_jq.connect(store) as conn:
        payload = json.dumps({"args": ["plain"]}).encode()
        conn.queue("default").enqueue(payload, type=tasks.note.module_path)
        assert run_all(store) == []
    assert seen == [(("plain",), {})]


def test_database_connections_end_with_the_task(
    store: str, seen: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CONN_MAX_AGE is 0: none is kept from task to task, as from request to request."""
    # Django keeps a database in memory open, whatever is asked of it.
    monkeypatch.setitem(connections.databases["default"], "NAME", str(tmp_path / "data"))
    for _ in range(3):
        tasks.query.enqueue()
    assert run_all(store) == []
    assert [fresh for _, fresh in seen] == [True] * 3
    assert len({thread for thread, _ in seen}) == 1


def test_queues_of_a_worker(store: str, use: Callable[..., None]) -> None:
    assert "default, emails" in repr(make_worker())
    with pytest.raises(cwist_jq.InvalidParam, match="queue other is none of backend default"):
        make_worker(queues={"default": 1, "other": 2})
    use(store, queues=())
    assert " other " in repr(make_worker(queues=iter(["other"])))
    assert " default " in repr(make_worker())
