"""Metrics for Prometheus: of what a worker runs, and of what queues hold.

Needs the extra cwist_jq[prometheus]. Times are in seconds, names end as Prometheus has it.
"""

from __future__ import annotations

import logging
import threading
from time import perf_counter

from cwist_jq.contrib.ends import ACKED, end_of
from cwist_jq.errors import ConnectionFailed, Error, InvalidParam
from cwist_jq.worker import Middleware

try:
    from prometheus_client import REGISTRY, Counter, Gauge, Histogram
    from prometheus_client.metrics_core import GaugeMetricFamily
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        "cwist_jq.contrib.prometheus needs prometheus-client; "
        'run: pip install "cwist_jq[prometheus]"',
        name=_missing.name,
    ) from _missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client.registry import CollectorRegistry

    from cwist_jq.connection import Connection
    from cwist_jq.job import Job
    from cwist_jq.queue import Queue
    from cwist_jq.stats import Stats

__all__ = ["QueueCollector", "WorkerMetrics"]

_log = logging.getLogger("cwist_jq.prometheus")

#: Handlers take from a millisecond to an hour.
BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)
#: Jobs of more types than these are counted under OTHER: a producer chooses types.
MOST_TYPES = 100
OTHER = "(other)"


class WorkerMetrics(Middleware):
    """Counts and times the jobs of workers, by queue and type.

    `cwist_jq_jobs_ended_total` has the label `outcome`, which says what the worker does with the
    job when its handler has ended: "acked", "nacked", "buried" (a dead letter now) or "released"
    (by a Snooze, or because a child process ended before the handler began).

    The first 100 types have series of their own; all further types share "(other)". A job without
    a type has the type "".
    """

    def __init__(
        self, registry: CollectorRegistry = REGISTRY, *, buckets: Sequence[float] = BUCKETS
    ) -> None:
        """Makes the metrics. One object may serve several workers of a process.

        Args:
            registry: Where they are registered.
            buckets: Upper bounds of the histogram, in seconds, rising.

        Raises:
            ValueError: The registry has these metrics already.
        """
        labels = ("queue", "type")
        self._begun = Counter(
            "cwist_jq_jobs_started",
            "Deliveries whose handler was started.",
            labels,
            registry=registry,
        )
        self._ended = Counter(
            "cwist_jq_jobs_ended",
            "Deliveries whose handler has ended, by what becomes of the job.",
            (*labels, "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            "cwist_jq_job_duration_seconds",
            "How long handlers ran.",
            labels,
            registry=registry,
            buckets=buckets,
        )
        self._running = Gauge(
            "cwist_jq_jobs_running", "Jobs whose handlers run now.", labels, registry=registry
        )
        self._lost = Counter(
            "cwist_jq_leases_lost",
            "Jobs whose lease was lost before their handler had ended.",
            labels,
            registry=registry,
        )
        self._lock = threading.Lock()
        self._types: set[str] = set()
        self._started: dict[Job, float] = {}

    def before(self, job: Job) -> None:
        """Counts a job as running."""
        labels = self._labels(job)
        self._begun.labels(*labels).inc()
        self._running.labels(*labels).inc()
        self._started[job] = perf_counter()

    def after(self, job: Job) -> None:
        """Counts a job that is done."""
        self._end(job, ACKED)

    def failed(self, job: Job, error: BaseException) -> None:
        """Counts a job that is not."""
        self._end(job, end_of(job, error))

    def _end(self, job: Job, outcome: str) -> None:
        start = self._started.pop(job, None)
        if start is None:  # the before() of a middleware further out failed
            return
        labels = self._labels(job)
        self._running.labels(*labels).dec()
        self._seconds.labels(*labels).observe(perf_counter() - start)
        self._ended.labels(*labels, outcome).inc()
        if job.lease_lost:
            self._lost.labels(*labels).inc()

    def _labels(self, job: Job) -> tuple[str, str]:
        kind = job.type or ""
        with self._lock:
            if kind not in self._types:
                if len(self._types) >= MOST_TYPES:
                    return job.queue, OTHER
                self._types.add(kind)
        return job.queue, kind


_STATES = ("ready", "claimed", "delayed", "dead")


class QueueCollector:
    """Asks the server what queues hold, at each scrape.

    Register it in one process of all that use the queues: the numbers are the server's. A queue
    that cannot be asked has `cwist_jq_queue_up` 0 and no other samples, and a warning is logged;
    the scrape goes on. A server that is away costs it one operation timeout of the connection.
    """

    def __init__(
        self, queues: Iterable[Queue], registry: CollectorRegistry | None = REGISTRY
    ) -> None:
        """Registers itself.

        Args:
            queues: What to ask for. They stay yours to close, after the last scrape.
            registry: Where to register; None: nowhere.

        Raises:
            InvalidParam: There is no queue.
        """
        self._queues = list(queues)
        if not self._queues:
            raise InvalidParam("queues is empty; give at least one")
        if registry is not None:
            registry.register(self)

    def describe(self) -> list[GaugeMetricFamily]:
        """The names of the metrics; nothing is asked for them."""
        return list(_Families())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Asks all queues."""
        families = _Families()
        away: set[Connection] = set()
        for queue in self._queues:
            stats = self._ask(queue, away)
            if stats is None:
                families.up.add_metric([queue.name], 0)
            else:
                families.add(queue.name, stats)
        yield from families

    @staticmethod
    def _ask(queue: Queue, away: set[Connection]) -> Stats | None:
        """The statistics of a queue; away: connections whose server is not waited for again."""
        connection = queue._connection  # noqa: SLF001 (one package)
        if connection in away:
            return None
        try:
            return queue.stats()
        except Error as error:
            if isinstance(error, ConnectionFailed):
                away.add(connection)
            _log.warning("no statistics of queue %s: %s", queue.name, error)
            return None


class _Families:
    """The metrics of one scrape."""

    def __init__(self) -> None:
        def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"cwist_jq_queue_{name}", text, labels=("queue", *labels))

        self.up = gauge("up", "1 when the server told the statistics of the queue.")
        self._jobs = gauge("jobs", "Jobs in the queue.", "state")
        self._age = gauge(
            "oldest_ready_age_seconds", "How long the oldest ready job has been ready; 0: none is."
        )
        self._consumers = gauge("consumers", "Consumers that hold or wait for jobs.")
        self._paused = gauge("paused", "1 when claims are paused.")

    def __iter__(self) -> Iterator[GaugeMetricFamily]:
        return iter((self.up, self._jobs, self._age, self._consumers, self._paused))

    def add(self, name: str, stats: Stats) -> None:
        """Adds what is known of a queue."""
        self.up.add_metric([name], 1)
        for state in _STATES:
            self._jobs.add_metric([name, state], getattr(stats, state))
        self._age.add_metric([name], stats.oldest_ready or 0.0)
        self._consumers.add_metric([name], stats.consumers)
        self._paused.add_metric([name], int(stats.paused))
