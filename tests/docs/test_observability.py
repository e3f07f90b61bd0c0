"""The examples of docs/observability.md run as they stand there, but for addresses."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq.contrib import prometheus
from cwist_jq.worker import enqueue_json
from tests.docs.test_c_library import LIBRARY, MAIN
from tests.observers import Observer
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
METRICS, PRODUCER, TRACED = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(IN_C,) = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
ADDRESS = "redis://127.0.0.1:6379"
#: What `opentelemetry-instrument` does for a program, with spans on its standard output.
SDK = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

def line(span):
    parent = span.parent.span_id if span.parent else 0
    return f"span {span.name}: {span.context.trace_id} {span.context.span_id} {parent}\\n"

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=line)))
trace.set_tracer_provider(provider)
"""


@contextmanager
def program(text: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs a worker; it must end well."""
    path = folder / "tasks.py"
    path.write_text(text, encoding="utf-8")
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_metrics(url: str, conn: cwist_jq.Connection, observer: Observer, tmp_path: Path) -> None:
    """Each metric of the page is there, with the labels that it says."""
    port = _free_port()
    assert ADDRESS in METRICS
    assert "9108" in METRICS
    enqueue_json(conn.queue("emails"), {"to": "a@b.co"}, type="welcome")
    text = METRICS.replace(ADDRESS, url).replace("9108", str(port))
    with program(text, tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "welcome a@b.co\n"
        eventually(lambda: observer.ready_and_claimed("emails") == 0)
        address = f"http://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            scraped = answer.read().decode()
    told = re.findall(r"^\| `(cwist_jq_\w+)` \| (\w+) \| (.*?) \|", PAGE, re.MULTILINE)
    assert len(told) == 10
    for name, kind, labels in told:
        if name == "cwist_jq_leases_lost_total":
            continue  # none was lost
        family = name if kind != "counter" else name.removesuffix("_total") + "(_total)?"
        assert re.search(rf"^# TYPE {family} {kind}$", scraped, re.MULTILINE), name
        series = name + ("_count" if kind == "histogram" else "")
        (found, *_) = re.findall(rf"^{series}\{{(.*?)\}} ", scraped, re.MULTILINE)
        assert set(re.findall(r"(\w+)=", found)) == set(re.findall(r"\w+", labels)), name
    assert 'cwist_jq_jobs_ended_total{outcome="acked",queue="emails",type="welcome"} 1.0' in scraped
    assert f"first {prometheus.MOST_TYPES} types" in PAGE
    assert f"`{prometheus.OTHER}`" in PAGE


def test_traces(url: str, observer: Observer, tmp_path: Path) -> None:
    """The three spans are one trace, each the child of the one before."""
    sent = subprocess.run(
        [sys.executable, "-c", SDK + PRODUCER.replace(ADDRESS, url)],
        check=True,
        timeout=PATIENCE,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    with program(SDK + TRACED.replace(ADDRESS, url), tmp_path) as running:
        assert running.stdout is not None
        lines = [sent, *(running.stdout.readline() for _ in range(3))]
        eventually(lambda: observer.ready_and_claimed("emails") == 0)
    assert lines.pop(1) == "welcome a@b.co\n"
    spans = {}
    for line in lines:
        name, numbers = line.removeprefix("span ").split(": ")
        spans[name] = numbers.split()
    producer, handler, inner = (
        spans[name] for name in ("send emails", "process emails", "send mail")
    )
    assert producer[0] == handler[0] == inner[0]
    assert (producer[2], handler[2], inner[2]) == ("0", producer[1], handler[1])


@pytest.mark.engine("redis")
def test_c(url: str, queue: cwist_jq.Queue, queue_name: str, tmp_path: Path) -> None:
    source = tmp_path / "traced.c"
    call = 'cwist_error_t sent = send_traced(queue, "{}", argv[1]); (void)sent;'
    source.write_text(IN_C + MAIN.replace("CALL", call), encoding="utf-8")
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", f"-L{LIBRARY}", "-lcwist_jq"]
    words = ["cc", str(source), *flags, f"-Wl,-rpath,{LIBRARY}", "-o", str(tmp_path / "traced")]
    subprocess.run(words, check=True)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    subprocess.run([tmp_path / "traced", trace, url, queue_name], check=True, timeout=PATIENCE)
    job = queue.claim(PATIENCE)
    assert job is not None
    assert dict(job.headers) == {"traceparent": trace}
    job.ack()
