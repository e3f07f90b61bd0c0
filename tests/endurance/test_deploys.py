"""A deploy every 300 ms for a minute; a lease of 60 s that is left would be noticed."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from cwist_jq.worker import enqueue_json
from tests.conformance.helpers import MakeQueue
from tests.observers import Observer
from tests.waiting import eventually
from tests.worker.helpers import Process, Steps, data, is_done, pairs

PERIOD = 0.3
DEPLOYS = 200
#: How many versions are up at once: a worker has some time to start before it is replaced.
AT_ONCE = 5
JOBS_EACH = 8

#: A job has one delivery: one that a deploy spent would be a dead letter.
OPTIONS = {"visibility_timeout": 60, "max_retries": 1}


class _Deploys:
    """Replaces workers by SIGTERM, the oldest first."""

    def __init__(self, url: str, queue: str, processes: int) -> None:
        self._words = (url, queue)
        self._settings: dict[str, Any] = {"concurrency": 4, "queue_options": OPTIONS}
        if processes:
            self._settings["processes"] = processes
        self._running: list[Process] = []
        self.ended = 0
        #: How many of them had begun to work.
        self.worked = 0

    def start(self) -> Process:
        """One more worker."""
        self._running.append(Process(*self._words, self._settings))
        return self._running[-1]

    def keep(self, most: int) -> None:
        """Ends the oldest until that many are left."""
        for one in self._running[: max(0, len(self._running) - most)]:
            one.signal(signal.SIGTERM)
        while len(self._running) > most:
            one = self._running[0]
            code = one.wait(30)
            one.close()
            self._running.pop(0)
            worked = one.says("works on")
            # Before it works it ends as any program does.
            assert code == 0 or (code == -signal.SIGTERM and not worked), one.log
            self.ended += 1
            self.worked += worked

    def close(self) -> None:
        """Kills what is left of a test that failed."""
        for one in self._running:
            one.close()


@pytest.mark.parametrize("kind", ["sleep", "async-sleep", "child-sleep"])
def test_nothing_waits_for_a_lease(
    url: str,
    make_queue: MakeQueue,
    observer: Observer,
    steps: Steps,
    tell: Callable[..., None],
    kind: str,
) -> None:
    """N05, D09: nothing stays claimed, no attempt is spent, each job runs once."""
    queue = make_queue(**OPTIONS)
    name = kind.removeprefix("child-")
    chance = random.Random(6)
    ids: list[str] = []
    deploys = _Deploys(url, queue.name, 0 if kind == name else 2)
    try:
        for _ in range(DEPLOYS):
            begin = time.monotonic()
            for _ in range(JOBS_EACH):
                job = data(steps, seconds=chance.uniform(0, 0.03))
                ids.append(enqueue_json(queue, job, type=name))
            deploys.start()
            deploys.keep(AT_ONCE)
            time.sleep(max(0.0, begin + PERIOD - time.monotonic()))
        deploys.keep(0)
        claimed, left = observer.claimed(queue.name), observer.ready_and_claimed(queue.name)
        ended, worked = deploys.ended, deploys.worked
        deploys.start().works()
        began = time.monotonic()
        eventually(is_done(observer, queue.name), timeout=30)
        took = time.monotonic() - began
        deploys.keep(0)
    finally:
        deploys.close()
    begun = steps.of("begin")
    tell(
        jobs=len(ids),
        deploys=ended,
        that_worked=worked,
        claimed_after=claimed,
        ready_after=left - claimed,
        rest_done_in=f"{took:.1f} s",
        doubles=len(begun) - len(set(begun)),
        dead=len(observer.dead(queue.name)),
    )
    assert claimed == 0
    assert sorted(begun) == sorted(steps.of("end")) == pairs(ids)
    assert observer.dead(queue.name) == []
    assert worked > ended / 4  # on a slow machine many are replaced while they start
