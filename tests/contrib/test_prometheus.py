"""Metrics for Prometheus: what workers count, and what a scrape asks the server."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import cwist_jq
from cwist_jq.contrib.prometheus import MOST_TYPES, QueueCollector, WorkerMetrics
from cwist_jq.worker import Worker, enqueue_json
from cwist_jq.worker.middleware import Hooks
from cwist_jq.worker.process import Gone
from cwist_jq.worker.processes import ProcessLane
from tests.contrib.handlers import PLACES, worker_at
from tests.waiting import eventually
from tests.worker.helpers import running


@pytest.fixture
def store() -> Iterator[cwist_jq.Connection]:
    with cwist_jq.connect("memory://") as conn:
        yield conn


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def _samples(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """The values of a metric, by the values of its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def _claimed(queue: cwist_jq.Queue, kind: str | None = None) -> cwist_jq.Job:
    queue.enqueue(b"", type=kind)
    job = queue.claim(0)
    assert job is not None
    return job


@pytest.mark.parametrize("place", PLACES)
def test_what_becomes_of_jobs_is_counted(
    store: cwist_jq.Connection, registry: CollectorRegistry, place: str
) -> None:
    queue = store.queue("q", max_retries=2, retry_delay=0)
    for data in ("done", "fail", "retry", "reject", "snooze"):
        enqueue_json(queue, data, type="a")
    enqueue_json(queue, "done")
    with running(worker_at(place, queue, store, WorkerMetrics(registry))):
        eventually(lambda: sum(_samples(registry, "cwist_jq_jobs_ended_total").values()) == 8)
    assert _samples(registry, "cwist_jq_jobs_ended_total") == {
        ("q", "a", "acked"): 1,
        ("q", "a", "nacked"): 2,  # failures and retries count alike
        ("q", "a", "buried"): 3,
        ("q", "a", "released"): 1,
        ("q", "", "acked"): 1,
    }
    assert _samples(registry, "cwist_jq_jobs_started_total") == {("q", "a"): 7, ("q", ""): 1}
    assert _samples(registry, "cwist_jq_job_duration_seconds_count") == {
        ("q", "a"): 7,
        ("q", ""): 1,
    }
    assert _samples(registry, "cwist_jq_jobs_running") == {("q", "a"): 0, ("q", ""): 0}
    assert _samples(registry, "cwist_jq_leases_lost_total") == {}
    stats = queue.stats()
    assert (stats.dead, stats.delayed, stats.ready) == (3, 1, 0)


def test_running_jobs_and_their_time(
    store: cwist_jq.Connection, registry: CollectorRegistry
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    queue = store.queue("q")
    worker = Worker(store, queue, middleware=[WorkerMetrics(registry, buckets=[0.02, 60])])

    @worker.handler
    def wait(data: Any) -> None:
        begun.set()
        go_on.wait()
        time.sleep(0.02)  # the time that is to be measured

    enqueue_json(queue, None)
    with running(worker):
        assert begun.wait(10)
        assert _samples(registry, "cwist_jq_jobs_running") == {("q", ""): 1}
        go_on.set()
        eventually(lambda: _samples(registry, "cwist_jq_jobs_running") == {("q", ""): 0})
    buckets = _samples(registry, "cwist_jq_job_duration_seconds_bucket")
    assert buckets == {("q", "", "0.02"): 0, ("q", "", "60.0"): 1, ("q", "", "+Inf"): 1}


def test_a_lost_lease_is_counted(store: cwist_jq.Connection, registry: CollectorRegistry) -> None:
    metrics = WorkerMetrics(registry)
    job = _claimed(store.queue("q", visibility_timeout=0.01), "a")
    metrics.before(job)
    eventually(lambda: job.lease_lost)
    metrics.after(job)
    assert _samples(registry, "cwist_jq_leases_lost_total") == {("q", "a"): 1}


def test_producers_cannot_make_series_without_end(
    store: cwist_jq.Connection, registry: CollectorRegistry
) -> None:
    metrics = WorkerMetrics(registry)
    queue = store.queue("q")
    for number in [*range(MOST_TYPES + 5), 0]:
        job = _claimed(queue, f"type {number}")
        metrics.before(job)
        metrics.after(job)
        job.ack()
    counts = _samples(registry, "cwist_jq_jobs_started_total")
    assert len(counts) == MOST_TYPES + 1
    assert counts["q", "(other)"] == 5
    assert counts["q", "type 0"] == 2


def test_a_child_that_had_not_begun_counts_no_failure(
    store: cwist_jq.Connection, registry: CollectorRegistry
) -> None:
    """Its job goes to another one, and each before() has its end."""

    class Ended:
        began = False

        def ask(self, job: cwist_jq.Job) -> None:
            raise Gone("exit code 1")

    job = _claimed(store.queue("q"), "a")
    lane = ProcessLane(0, 1, [], Hooks([WorkerMetrics(registry)]))
    with pytest.raises(Gone):
        lane.run(Ended(), job)  # type: ignore[arg-type]  # as a child that has ended
    assert lane.ready.pop() is job
    assert _samples(registry, "cwist_jq_jobs_running") == {("q", "a"): 0}
    assert _samples(registry, "cwist_jq_jobs_ended_total") == {("q", "a", "released"): 1}


def test_a_scrape_asks_the_server(
    make_queue: Callable[..., cwist_jq.Queue], registry: CollectorRegistry, queue_name: str
) -> None:
    queue = make_queue()
    QueueCollector([queue], registry)
    name = (queue_name,)
    assert _samples(registry, "cwist_jq_queue_oldest_ready_age_seconds") == {name: 0}
    queue.enqueue(b"dead")
    queue.enqueue(b"claimed")
    queue.enqueue_many([b"ready"] * 3)
    queue.enqueue(b"later", delay=3600)
    dead, claimed = queue.claim_many(2, 5)
    dead.nack(dead=True)
    queue.pause()
    held = {"ready": 3, "claimed": 1, "delayed": 1, "dead": 1}
    jobs = {(queue_name, state): count for state, count in held.items()}
    eventually(lambda: _samples(registry, "cwist_jq_queue_jobs") == jobs)
    assert _samples(registry, "cwist_jq_queue_up") == {name: 1}
    assert _samples(registry, "cwist_jq_queue_paused") == {name: 1}
    assert _samples(registry, "cwist_jq_queue_consumers")[name] >= 1
    eventually(lambda: _samples(registry, "cwist_jq_queue_oldest_ready_age_seconds")[name] > 0)
    claimed.ack()


def test_a_queue_that_cannot_be_asked_does_not_break_the_scrape(
    store: cwist_jq.Connection, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    closed, good = store.queue("closed"), store.queue("good")
    QueueCollector([closed, good], registry)
    closed.close()
    text = generate_latest(registry).decode()
    assert 'cwist_jq_queue_up{queue="closed"} 0.0' in text
    assert 'cwist_jq_queue_jobs{queue="good",state="ready"} 0.0' in text
    assert 'cwist_jq_queue_jobs{queue="closed"' not in text
    assert "no statistics of queue closed" in caplog.text


def test_a_server_that_is_away_is_waited_for_once(
    own_server: Any, registry: CollectorRegistry
) -> None:
    """Prometheus gives up a scrape after 10 s, whatever the number of queues."""
    with cwist_jq.connect(own_server.url, operation_timeout=0.5) as conn:
        QueueCollector([conn.queue(f"q{number}") for number in range(6)], registry)
        own_server.kill()
        start = time.monotonic()
        assert set(_samples(registry, "cwist_jq_queue_up").values()) == {0}
        assert time.monotonic() - start < 2.0


def test_a_collector_needs_a_queue(registry: CollectorRegistry) -> None:
    with pytest.raises(cwist_jq.InvalidParam):
        QueueCollector([], registry)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("prometheus", "prometheus_client", "cwist_jq[prometheus]"),
        ("opentelemetry", "opentelemetry", "cwist_jq[opentelemetry]"),
    ],
)
def test_a_missing_package_is_told(module: str, package: str, extra: str) -> None:
    """And the package itself imports neither."""
    program = f"import sys; sys.modules[{package!r}] = None; import cwist_jq.worker\n"
    done = subprocess.run(
        [sys.executable, "-c", program + f"import cwist_jq.contrib.{module}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: cwist_jq.contrib.")
    assert last.endswith(f'run: pip install "{extra}"')
