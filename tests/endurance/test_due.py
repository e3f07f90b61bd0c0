"""Many jobs that are due at once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import cwist_jq
from tests.observers import Observer
from tests.waiting import eventually
from tests.worker.helpers import Process, Steps, is_done, pairs


def test_jobs_due_in_the_same_second(
    url: str,
    queue: cwist_jq.Queue,
    observer: Observer,
    steps: Steps,
    tell: Callable[..., None],
) -> None:
    """D10: 500 jobs and ten workers, each in a process of its own; 500 runs."""
    delay = 20.0
    workers = [Process(url, queue.name, {"concurrency": 4}) for _ in range(10)]
    try:
        for worker in workers:
            eventually(lambda: worker.says("works on"), timeout=60)  # noqa: B023 (called at once)
        began = time.monotonic()
        items = [
            cwist_jq.Item(b'{"log": "%s"}' % str(steps.path).encode(), "sleep", delay=delay)
            for _ in range(500)
        ]
        ids = queue.enqueue_all(items)
        stored = time.monotonic()
        eventually(lambda: steps.count("begin") > 0, timeout=2 * delay, pause=0.002)
        first = time.monotonic()
        eventually(lambda: steps.count("end") >= 500, timeout=30)
        last = time.monotonic()
        eventually(is_done(observer, queue.name))
    finally:
        for worker in workers:
            worker.signal(signal.SIGTERM)
        codes = [worker.wait() for worker in workers]
        for worker in workers:
            worker.close()
    tell(
        jobs=500,
        runs=steps.count("begin"),
        workers_that_ran_some=len({one[3] for one in steps.all()}),
        first_late_by=f"{first - stored - delay:.2f} s",
        last_late_by=f"{last - stored - delay:.2f} s",
    )
    assert codes == [0] * 10
    assert sorted(steps.of("begin")) == sorted(steps.of("end")) == pairs(ids)
    assert first >= began + delay
    assert last - stored - delay < 5
