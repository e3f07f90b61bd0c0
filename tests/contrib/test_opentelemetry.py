"""Spans for OpenTelemetry: a trace goes from the producer through the job into the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import cwist_jq
import cwist_jq.aio
from cwist_jq.contrib.opentelemetry import Tracing, sending
from cwist_jq.worker import Middleware, Worker, enqueue_json
from tests.contrib.handlers import PLACES, worker_at
from tests.waiting import Background, eventually
from tests.worker.helpers import running


class Spans:
    """What was exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def all(self) -> Sequence[ReadableSpan]:
        """In the order of their ends."""
        return self._exporter.get_finished_spans()

    def come(self, count: int) -> Sequence[ReadableSpan]:
        """Waits until there are so many."""
        eventually(lambda: len(self.all()) >= count)
        assert len(self.all()) == count
        return self.all()


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def store() -> Iterator[cwist_jq.Connection]:
    with cwist_jq.connect("memory://") as conn:
        yield conn


def _id(span: ReadableSpan) -> int:
    found = span.get_span_context()
    assert found is not None
    return found.span_id


def _facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def _messaging(queue: str, operation: str) -> dict[str, Any]:
    return {
        "messaging.system": "cwist_jq",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


@pytest.mark.parametrize("place", ["thread", "loop"])
def test_a_trace_goes_on_in_the_handler(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, spans: Spans, place: str
) -> None:
    seen: list[Any] = []

    def look(data: Any, job: cwist_jq.Job) -> None:
        here = trace.get_current_span().get_span_context().span_id
        seen.append((here, baggage.get_baggage("tenant"), job.headers["Other"]))

    async def look_async(data: Any, job: cwist_jq.Job) -> None:
        look(data, job)

    worker = Worker(conn, queue.name, middleware=[Tracing(tracer_provider=spans.provider)])
    worker.handler("a")(look if place == "thread" else look_async)
    token = context.attach(baggage.set_baggage("tenant", "7"))
    try:
        with sending(queue.name, {"Other": "x"}, tracer_provider=spans.provider) as headers:
            job_id = enqueue_json(queue, None, type="a", headers=headers)
    finally:
        context.detach(token)
    with running(worker):
        sent, done = spans.come(2)

    assert (sent.name, sent.kind) == (f"send {queue.name}", SpanKind.PRODUCER)
    assert _facts(sent) == _messaging(queue.name, "send")
    assert (done.name, done.kind) == (f"process {queue.name}", SpanKind.CONSUMER)
    assert _facts(done) == {
        **_messaging(queue.name, "process"),
        "messaging.message.id": job_id,
        "messaging.cwist_jq.type": "a",
        "messaging.cwist_jq.attempts": 1,
        "messaging.cwist_jq.outcome": "acked",
    }
    assert done.parent is not None
    assert done.parent.span_id == _id(sent)
    assert [link.context.span_id for link in done.links] == [_id(sent)]
    assert done.status.status_code == StatusCode.UNSET
    assert seen == [(_id(done), "7", "x")]


@pytest.mark.parametrize("place", PLACES)
def test_each_attempt_has_a_span(store: cwist_jq.Connection, spans: Spans, place: str) -> None:
    """Those of one job are children of the span that sent it."""
    queue = store.queue("q", max_retries=2, retry_delay=0)
    with sending("q", tracer_provider=spans.provider) as headers:
        enqueue_json(queue, "fail", headers=headers)
    with running(worker_at(place, queue, store, Tracing(tracer_provider=spans.provider))):
        sent, *tries = spans.come(3)
    assert [span.parent.span_id for span in tries if span.parent] == [_id(sent)] * 2
    facts = [_facts(span) for span in tries]
    assert [one["messaging.cwist_jq.attempts"] for one in facts] == [1, 2]
    assert [one["messaging.cwist_jq.outcome"] for one in facts] == ["nacked", "buried"]
    kind = "cwist_jq.worker.errors.RemoteError" if place == "process" else "ValueError"
    for span in tries:
        assert _facts(span)["error.type"] == kind
        assert span.status.status_code == StatusCode.ERROR
        assert span.status.description == "ValueError: no such luck"
        (event,) = span.events
        assert event.name == "exception"
        assert "no such luck" in str((event.attributes or {})["exception.message"])


@pytest.mark.parametrize("place", PLACES)
def test_a_snooze_is_no_error(store: cwist_jq.Connection, spans: Spans, place: str) -> None:
    queue = store.queue("q")
    enqueue_json(queue, "snooze")
    with running(worker_at(place, queue, store, Tracing(tracer_provider=spans.provider))):
        (span,) = spans.come(1)
    assert _facts(span)["messaging.cwist_jq.outcome"] == "released"
    assert span.status.status_code == StatusCode.UNSET
    assert not span.events


@pytest.mark.parametrize("place", PLACES)
def test_a_job_without_a_trace_begins_one(
    store: cwist_jq.Connection, spans: Spans, place: str
) -> None:
    """What is current where the worker was started is no parent, and nothing is left behind."""
    seen = []

    class Outer(Middleware):
        def before(self, job: cwist_jq.Job) -> None:
            seen.append(trace.get_current_span())

        def after(self, job: cwist_jq.Job) -> None:
            seen.append(trace.get_current_span())

    queue = store.queue("q")
    queue.enqueue(b"1")
    worker = worker_at(place, queue, store, Outer(), Tracing(tracer_provider=spans.provider))
    outside = copy_context()
    other = trace.NonRecordingSpan(trace.SpanContext(1, 1, is_remote=False))
    outside.run(context.attach, trace.set_span_in_context(other))
    run = Background(outside.run, worker.run)
    try:
        (span,) = spans.come(1)
        eventually(lambda: len(seen) == 2)
    finally:
        worker.stop()
        run.result()
    assert (span.parent, list(span.links)) == (None, [])
    assert seen[0] is seen[1]


def test_an_enqueue_that_fails_is_an_error(spans: Spans) -> None:
    with (
        pytest.raises(cwist_jq.ConnectionFailed),
        sending("q", tracer_provider=spans.provider),
    ):
        raise cwist_jq.ConnectionFailed("nobody there")
    (span,) = spans.all()
    assert span.status.status_code == StatusCode.ERROR
    assert _facts(span)["error.type"] == "cwist_jq.errors.ConnectionFailed"


async def _send(queue_name: str, spans: Spans) -> None:
    async with cwist_jq.aio.connect("memory://") as conn, conn.queue(queue_name) as queue:
        with sending(queue.name, tracer_provider=spans.provider) as headers:
            await queue.enqueue(b"", headers=headers)
        job = await queue.claim(5)
        assert job is not None
        assert job.queue == queue_name
        assert job.headers["traceparent"] == headers["traceparent"]
        await job.ack()


def test_an_async_producer(spans: Spans) -> None:
    asyncio.run(_send("q", spans))
    (span,) = spans.all()
    assert span.name == "send q"
