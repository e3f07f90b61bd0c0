"""Leases are kept for as long as a handler runs, whatever it does."""

from __future__ import annotations

import signal
from typing import Any

import pytest

import cwist_jq
from cwist_jq.worker import Worker, enqueue_json
from tests.conformance.helpers import MakeQueue
from tests.observers import Observer
from tests.waiting import Background, eventually
from tests.worker import program
from tests.worker.helpers import Steps, data, is_done, process, running

pytestmark = pytest.mark.servers("all")

VISIBILITY = 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sleep", "async-sleep", "spin", "child-sleep", "child-spin"])
def test_a_long_handler_runs_once(
    url: str,
    make_queue: MakeQueue,
    observer: Observer,
    steps: Steps,
    kind: str,
) -> None:
    """D02, D03: six times the visibility timeout, also when it holds the interpreter's lock."""
    queue = make_queue(visibility_timeout=VISIBILITY, max_retries=1)
    name = kind.removeprefix("child-")
    options: dict[str, Any] = {
        "processes": 1 if kind != name else 0,
        "queue_options": {"visibility_timeout": VISIBILITY, "max_retries": 1},
    }
    with process(url, queue.name, **options) as worker:
        job_id = enqueue_json(queue, data(steps, seconds=3), type=name)
        eventually(lambda: steps.count("begin") == 1)
        other = Background(queue.claim, 3)  # looks for leases that are over
        eventually(is_done(observer, queue.name))
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
        assert not worker.says("WARNING cwist_jq.worker"), worker.log
    assert other.result() is None
    assert steps.of("begin") == steps.of("end") == [(job_id, 1)]


def test_leases_of_a_given_queue_are_kept(
    conn: cwist_jq.Connection, make_queue: MakeQueue, observer: Observer, steps: Steps
) -> None:
    """It was opened without auto_renew."""
    queue = make_queue(visibility_timeout=VISIBILITY, max_retries=1)
    worker = Worker(conn, queue)
    worker.handler("t")(program.sleep)
    job_id = enqueue_json(queue, data(steps, seconds=2), type="t")
    with running(worker):
        eventually(is_done(observer, queue.name))
    assert steps.of("end") == [(job_id, 1)]


@pytest.mark.servers("pinned")
def test_a_killed_worker_keeps_nothing(
    url: str, make_queue: MakeQueue, observer: Observer, steps: Steps
) -> None:
    """D02, L03: its jobs are back within the visibility timeout, and the attempt counts."""
    queue = make_queue(visibility_timeout=VISIBILITY)
    options = {"queue_options": {"visibility_timeout": VISIBILITY}}
    with process(url, queue.name, **options) as worker:
        job_id = enqueue_json(queue, data(steps, seconds=60), type="sleep")
        eventually(lambda: steps.count("begin") == 1)
        worker.signal(signal.SIGKILL)
        worker.wait()
    job = queue.claim(5)
    assert job is not None
    assert (job.id, job.attempts) == (job_id, 2)
