"""How a worker ends: what runs is finished, the rest is handed back, and the process is gone."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq.worker import Worker, enqueue_json
from tests.conformance.helpers import MakeQueue, claim
from tests.observers import Observer
from tests.waiting import Background, eventually
from tests.worker.helpers import Steps, data, is_done, pairs, process, running

KINDS = ["sleep", "async-sleep"]
SIGNALS = [signal.SIGTERM, signal.SIGINT]


def _options(kind: str) -> dict[str, Any]:
    """Where the program runs a kind of handler: "child-sleep" is sleep in a child process."""
    return {"processes": 1} if kind == "child-sleep" else {"concurrency": 1}


@pytest.mark.parametrize("kind", [*KINDS, "child-sleep"])
@pytest.mark.parametrize("number", SIGNALS)
def test_what_runs_is_finished_and_the_rest_handed_back(
    url: str, queue: cwist_jq.Queue, observer: Observer, steps: Steps, kind: str, number: int
) -> None:
    """D09, L03, N05: the handler ends, its ack is sent, exit code 0; nothing waits for a lease."""
    name = kind.removeprefix("child-")
    with process(url, queue.name, **_options(kind)) as worker:
        ids = [
            enqueue_json(queue, data(steps, seconds=seconds), type=name)
            for seconds in (0, 0, 0, 1, 0, 0)
        ]
        eventually(lambda: steps.count("begin") == 4)
        worker.signal(number)
        assert worker.wait() == 0, worker.log
    assert steps.of("begin") == steps.of("end") == [(job_id, 1) for job_id in ids[:4]]
    rest = [claim(queue, 1.0) for _ in range(2)]
    assert sorted((job.id, job.attempts) for job in rest) == pairs(ids[4:])


@pytest.mark.parametrize("kind", [*KINDS, "child-sleep"])
def test_what_runs_too_long_is_handed_back(
    url: str, queue: cwist_jq.Queue, steps: Steps, kind: str
) -> None:
    """N05: no attempt is spent, also when the handler did not end in time."""
    name = kind.removeprefix("child-")
    with process(url, queue.name, shutdown_timeout=0.3, **_options(kind)) as worker:
        job_id = enqueue_json(queue, data(steps, seconds=60), type=name)
        eventually(lambda: steps.count("begin") == 1)
        worker.signal(signal.SIGTERM)
        began = time.monotonic()
        assert worker.wait() == 0, worker.log
        assert 0.3 <= time.monotonic() - began + 0.05 < 5
        assert worker.says("is still running and handed back")
    job = claim(queue, 1.0)
    assert (job.id, job.attempts) == (job_id, 1)


@pytest.mark.parametrize("kind", [*KINDS, "child-sleep"])
def test_a_second_signal_does_not_wait(
    url: str, queue: cwist_jq.Queue, steps: Steps, kind: str
) -> None:
    name = kind.removeprefix("child-")
    with process(url, queue.name, **_options(kind)) as worker:
        job_id = enqueue_json(queue, data(steps, seconds=60), type=name)
        eventually(lambda: steps.count("begin") == 1)
        worker.signal(signal.SIGTERM)
        time.sleep(0.2)
        assert worker.popen.poll() is None
        began = time.monotonic()
        worker.signal(signal.SIGINT)
        assert worker.wait() == 128 + signal.SIGINT, worker.log
        assert time.monotonic() - began < 4
    job = claim(queue, 1.0)
    assert (job.id, job.attempts) == (job_id, 1)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_idle_worker_ends_quickly(url: str, queue_name: str, number: int) -> None:
    """R16: also when it waits in claims of several queues."""
    with process(url, [queue_name, f"{queue_name}-b"]) as worker:
        worker.works()
        time.sleep(0.3)
        began = time.monotonic()
        worker.signal(number)
        assert worker.wait() == 0, worker.log
        assert time.monotonic() - began < 2


def test_an_idle_worker_ends_quickly_without_a_server(own_server: Any, queue_name: str) -> None:
    """R16: again with the server down."""
    with process(own_server.url, queue_name) as worker:
        worker.works()
        time.sleep(0.3)
        own_server.kill()
        time.sleep(0.3)
        began = time.monotonic()
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("kind", KINDS)
def test_stop_from_another_thread(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, kind: str, steps: Steps
) -> None:
    """No signal is handled there; stop() does the same."""
    from tests.worker import program

    worker = Worker(conn, queue.name, concurrency=1)
    worker.handler("t")(program.sleep if kind == "sleep" else program.async_sleep)
    ids = [enqueue_json(queue, data(steps, seconds=0.3), type="t") for _ in range(3)]
    run = Background(worker.run)
    eventually(lambda: steps.count("begin") == 1)
    worker.stop()
    run.result()
    assert steps.of("end") == [(ids[0], 1)]
    assert observer.claimed(queue.name) == 0
    with running(worker):  # and again
        eventually(is_done(observer, queue.name))
    assert steps.of("end") == [(job_id, 1) for job_id in ids]


def test_stop_before_run(conn: cwist_jq.Connection, queue: cwist_jq.Queue) -> None:
    worker = Worker(conn, queue.name)
    worker.handler(lambda data: None)
    worker.stop()
    Background(worker.run).result()


def test_one_run_at_a_time(conn: cwist_jq.Connection, queue_name: str) -> None:
    worker = Worker(conn, queue_name)
    worker.handler(lambda data: None)
    with running(worker):
        eventually(lambda: "running" in repr(worker))
        with pytest.raises(cwist_jq.Closed):
            worker.run()


def test_a_closed_queue_ends_the_worker(conn: cwist_jq.Connection, make_queue: MakeQueue) -> None:
    queue = make_queue()
    worker = Worker(conn, queue)
    worker.handler(lambda data: None)
    run = Background(worker.run)
    eventually(lambda: "running" in repr(worker))
    queue.close()
    with pytest.raises(cwist_jq.Closed):
        run.result()


def test_signal_handlers_are_put_back(
    conn: cwist_jq.Connection, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test runs in the main thread."""
    before = [signal.getsignal(number) for number in SIGNALS]
    worker = Worker(conn, queue_name)
    worker.handler(lambda data: None)
    stopper = Background(_raise_when_running, worker)
    worker.run()
    stopper.result()
    assert [signal.getsignal(number) for number in SIGNALS] == before


def _raise_when_running(worker: Worker) -> None:
    eventually(lambda: worker._session is not None)
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sleep", "child-sleep"])
def test_deploys_leave_nothing_behind(
    url: str,
    make_queue: Callable[..., cwist_jq.Queue],
    observer: Observer,
    steps: Steps,
    kind: str,
) -> None:
    """N05: a SIGTERM every 300 ms at a random moment; a lease of 60 s would be noticed."""
    queue = make_queue(max_retries=1)
    name = kind.removeprefix("child-")
    processes = 2 if kind == "child-sleep" else 0
    ids = []
    for _ in range(6):
        ids += [enqueue_json(queue, data(steps, seconds=0.01), type=name) for _ in range(20)]
        options = {"queue_options": {"visibility_timeout": 60, "max_retries": 1}}
        with process(url, queue.name, concurrency=4, processes=processes, **options) as worker:
            worker.works()
            time.sleep(random.uniform(0, 0.3))
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0, worker.log
        assert observer.claimed(queue.name) == 0
    with process(url, queue.name, processes=processes) as worker:
        worker.works()
        eventually(is_done(observer, queue.name))
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
    assert sorted(steps.of("end")) == sorted(steps.of("begin")) == pairs(ids)
    assert observer.dead(queue.name) == []
