"""Spans for OpenTelemetry: one where jobs are enqueued, one for each run of a handler.

Needs the extra cwist_jq[opentelemetry]. Names and attributes follow the semantic conventions for
messaging; the trace travels in the headers of the job (`traceparent` as a rule).
"""

from __future__ import annotations

from contextlib import contextmanager

import cwist_jq
from cwist_jq.contrib.ends import ACKED, RELEASED, end_of
from cwist_jq.worker import Middleware
from cwist_jq.worker.outcome import outcome_of

try:
    from opentelemetry import context, propagate, trace
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        "cwist_jq.contrib.opentelemetry needs opentelemetry-api; "
        'run: pip install "cwist_jq[opentelemetry]"',
        name=_missing.name,
    ) from _missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextvars import Token
    from typing import Any

    from opentelemetry.trace import Span, Tracer, TracerProvider

    from cwist_jq.job import Job

__all__ = ["Tracing", "sending"]

SYSTEM = "cwist_jq"


def _tracer(provider: TracerProvider | None) -> Tracer:
    return trace.get_tracer("cwist_jq", cwist_jq.__version__, provider)


def _attributes(queue: str, operation: str) -> dict[str, str | int]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _error_type(error: BaseException) -> str:
    kind = type(error)
    builtin = kind.__module__ == "builtins"
    return kind.__qualname__ if builtin else f"{kind.__module__}.{kind.__qualname__}"


@contextmanager
def sending(
    queue: str,
    headers: Mapping[str, str] | None = None,
    *,
    tracer_provider: TracerProvider | None = None,
) -> Iterator[dict[str, str]]:
    """A span of the producer around an enqueue. What it gives are the headers for the jobs.

    The span is the current one inside; it has the exception when the block raises one. An async
    enqueue is awaited inside in the same way.

    Example:
        with sending(queue.name) as headers:
            queue.enqueue(payload, headers=headers)

    Args:
        queue: The name of the queue.
        headers: Other headers that the jobs are to have. Those of a trace are replaced.
        tracer_provider: Whose spans; default: the global one.
    """
    with _tracer(tracer_provider).start_as_current_span(
        f"send {queue}", kind=trace.SpanKind.PRODUCER, attributes=_attributes(queue, "send")
    ) as span:
        carrier = dict(headers or {})
        propagate.inject(carrier)
        try:
            yield carrier
        except Exception as error:
            span.set_attribute("error.type", _error_type(error))
            raise


class Tracing(Middleware):
    """A span of the consumer for each run of a handler, as a child of the producer's.

    It is the current span inside the handler, and baggage of the producer is current too. In a
    child process neither is: there the headers of the job have the trace. A handler that failed
    makes it an error, with the exception; a Snooze does not. One object may serve several workers.
    """

    def __init__(self, *, tracer_provider: TracerProvider | None = None) -> None:
        """Makes the middleware.

        Args:
            tracer_provider: Whose spans; default: the global one.
        """
        self._tracer = _tracer(tracer_provider)
        self._runs: dict[Job, tuple[Span, Token[Any]]] = {}

    def before(self, job: Job) -> None:
        """Begins the span."""
        attributes = _attributes(job.queue, "process")
        attributes["messaging.message.id"] = job.id
        attributes["messaging.cwist_jq.attempts"] = job.attempts
        if job.type is not None:
            attributes["messaging.cwist_jq.type"] = job.type
        # Of the job alone: what is current where the worker was started is no parent.
        sent = propagate.extract(job.headers, context=context.Context())
        origin = trace.get_current_span(sent).get_span_context()
        span = self._tracer.start_span(
            f"process {job.queue}",
            context=sent,
            kind=trace.SpanKind.CONSUMER,
            attributes=attributes,
            links=[trace.Link(origin)] if origin.is_valid else [],
        )
        self._runs[job] = span, context.attach(trace.set_span_in_context(span, sent))

    def after(self, job: Job) -> None:
        """Ends it well."""
        run = self._runs.pop(job, None)
        if run is not None:
            _end(*run, ACKED)

    def failed(self, job: Job, error: BaseException) -> None:
        """Ends it, as an error when it is one."""
        run = self._runs.pop(job, None)
        if run is None:  # the before() of a middleware further out failed
            return
        outcome = end_of(job, error)
        if outcome != RELEASED:
            span, _ = run
            span.record_exception(error)
            span.set_attribute("error.type", _error_type(error))
            span.set_status(trace.StatusCode.ERROR, outcome_of(error).reason)
        _end(*run, outcome)


def _end(span: Span, token: Token[Any], outcome: str) -> None:
    context.detach(token)
    span.set_attribute("messaging.cwist_jq.outcome", outcome)
    span.end()
