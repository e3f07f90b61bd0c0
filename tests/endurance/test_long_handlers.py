"""A handler that takes ten times the visibility timeout runs once, whatever it does."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq.worker import enqueue_json
from tests.observers import Observer
from tests.waiting import Background, eventually
from tests.worker.helpers import Steps, data, is_done, process

VISIBILITY = 1.0
SECONDS = 10.0


@pytest.mark.parametrize(
    "kind", ["sleep", "spin", "async-sleep", "async-spin", "child-sleep", "child-spin"]
)
def test_it_runs_once(
    url: str,
    make_queue: Callable[..., cwist_jq.Queue],
    observer: Observer,
    steps: Steps,
    tell: Callable[..., None],
    kind: str,
) -> None:
    """D02, D03: "spin" is a C function that does not let go of the interpreter's lock."""
    queue = make_queue(visibility_timeout=VISIBILITY, max_retries=3)
    name = kind.removeprefix("child-")
    options: dict[str, Any] = {
        "processes": 1 if kind != name else 0,
        "queue_options": {"visibility_timeout": VISIBILITY, "max_retries": 3},
    }
    with process(url, queue.name, **options) as worker:
        job_id = enqueue_json(queue, data(steps, seconds=SECONDS), type=name)
        eventually(lambda: steps.count("begin") == 1)
        began = time.monotonic()
        # Others look for leases that are over; one of them would get the job.
        others = [Background(queue.claim, SECONDS + 1) for _ in range(2)]
        eventually(is_done(observer, queue.name), timeout=2 * SECONDS)
        took = time.monotonic() - began
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
        assert not worker.says("WARNING cwist_jq.worker"), worker.log
    stolen = sum(one.result() is not None for one in others)
    tell(runs=steps.count("begin"), stolen=stolen, done_after=f"{took:.1f} s")
    assert stolen == 0
    assert steps.of("begin") == steps.of("end") == [(job_id, 1)]
    assert took > SECONDS - 1
