"""Two operators bring the same dead letters back at once, while a worker works."""

from __future__ import annotations

import collections
import signal
from collections.abc import Callable

import cwist_jq
from tests.conformance.helpers import MakeQueue
from tests.observers import Observer
from tests.waiting import Background, eventually
from tests.worker.helpers import Steps, is_done, process

LETTERS = 20_000


def test_two_operators_requeue_all(
    url: str,
    make_queue: MakeQueue,
    observer: Observer,
    steps: Steps,
    tell: Callable[..., None],
) -> None:
    """None is doubled or lost, and each letter counts for one operator only."""
    queue = make_queue(max_retries=1)
    payload = b'{"log": "%s"}' % str(steps.path).encode()
    ids: list[str] = []
    while len(ids) < LETTERS:
        ids += queue.enqueue_many([payload] * 1000, type="sleep")
        jobs = queue.claim_many(1000, 10)
        queue.nack_many(jobs)
    while jobs := queue.claim_many(1000, 0.3):
        queue.nack_many(jobs)
    assert queue.dead_count() == LETTERS

    def operator() -> int:
        with cwist_jq.connect(url) as conn, conn.queue(queue.name) as mine:
            return mine.dead.requeue_all()

    with process(url, queue.name, concurrency=4) as worker:
        worker.works()
        operators = [Background(operator) for _ in range(2)]
        moved = [one.result(300) for one in operators]
        eventually(is_done(observer, queue.name), timeout=120, pause=0.1)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
    runs = collections.Counter(steps.of("end"))
    tell(
        letters=LETTERS,
        moved=" + ".join(str(one) for one in moved),
        runs=sum(runs.values()),
        doubles=sum(runs.values()) - len(runs),
        dead=queue.dead_count(),
    )
    assert sum(moved) == LETTERS
    assert runs == collections.Counter((job_id, 1) for job_id in ids)
    assert queue.dead_count() == 0
