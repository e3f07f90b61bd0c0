"""A worker that ends again and again, and kills its children: nothing is lost."""

from __future__ import annotations

import collections
import random
import signal
import time
from collections.abc import Callable
from typing import Any

from cwist_jq.worker import enqueue_json
from tests.conformance.helpers import MakeQueue
from tests.observers import Observer
from tests.waiting import eventually
from tests.worker.helpers import Steps, data, is_done, process

MINUTE = 60.0

#: What a poisoned job costs: each delivery kills a child.
DELIVERIES = 5
VISIBILITY = 2.0
CHILDREN = 3


def test_a_restart_loop_with_poison(
    url: str,
    make_queue: MakeQueue,
    observer: Observer,
    steps: Steps,
    tell: Callable[..., None],
) -> None:
    """X01, X07, D02, N05: for a minute a worker is ended, one time in four by SIGKILL.

    One job of 200 kills the child that runs it. The others are done; only SIGKILL spends their
    attempts.
    """
    options = {"visibility_timeout": VISIBILITY, "max_retries": DELIVERIES}
    queue = make_queue(**options)
    chance = random.Random(5)
    good: list[str] = []
    poison: list[str] = []
    restarts = kills = 0
    end = time.monotonic() + MINUTE

    def worker() -> Any:
        return process(url, queue.name, processes=CHILDREN, queue_options=options)

    while time.monotonic() < end:
        good += [enqueue_json(queue, data(steps, seconds=0.002), type="sleep") for _ in range(100)]
        poison.append(enqueue_json(queue, data(steps), type="segfault"))
        good += [enqueue_json(queue, data(steps, seconds=0.002), type="sleep") for _ in range(99)]
        with worker() as one:
            one.works()
            time.sleep(chance.uniform(0.2, 2.0))
            if chance.random() < 0.25:
                one.signal(signal.SIGKILL)
                one.wait()
                kills += 1
            else:
                one.signal(signal.SIGTERM)
                assert one.wait() == 0, one.log
            restarts += 1
    with worker() as one:
        eventually(is_done(observer, queue.name), timeout=2 * MINUTE, pause=0.1)
        one.signal(signal.SIGTERM)
        assert one.wait() == 0, one.log
    ended = collections.Counter(job_id for job_id, _ in steps.of("end"))
    tell(
        jobs=len(good) + len(poison),
        restarts=restarts,
        kills=kills,
        poisoned=len(poison),
        crashes=sum(job_id in set(poison) for job_id, _ in steps.of("begin")),
        doubles=sum(ended.values()) - len(ended),
        attempts_spent=sum(attempt > 1 for _, attempt in steps.of("end")),
        dead=len(observer.dead(queue.name)),
    )
    assert kills
    assert set(ended) == set(good), "each good job is done"
    # Twice only what had ended when its worker was killed, before its ack: no more than the acks
    # of one round trip and what the children had in hand.
    assert max(ended.values()) <= 1 + kills
    assert max(attempt for _, attempt in steps.of("end")) <= 1 + kills
    letters = observer.dead(queue.name)
    assert sorted(letter.id for letter in letters) == sorted(poison)
    for letter in letters:
        assert letter.attempts == DELIVERIES
        assert letter.cause in ("nacked", "lease-expired")
        if letter.cause == "nacked":
            assert letter.reason == "the process that ran the handler ended: signal SIGSEGV"
    runs = collections.Counter(steps.of("begin"))
    assert max(runs[job_id, attempt] for job_id in poison for attempt in range(1, 6)) == 1
