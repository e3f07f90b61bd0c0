"""Fixtures for all engines, and the gate.

A test that asks for `backend` (or what is made from it: `server`, `url`, `observer`, `conn` …) runs
once for each engine: on the pinned server everywhere, under tests/conformance on the distribution's
as well, and under tests/tls on one that encrypts. Markers change that:
`@pytest.mark.engine("redis")` picks engines, `@pytest.mark.servers("all")` or `("pinned")` picks
the servers, and `@pytest.mark.slow` means pinned ones unless CWIST_TEST_THOROUGH is set.

Tests under tests/conformance run on memory:// too, which has no server, except those that need one:
they use `server` or what is made from it, or say so with `@pytest.mark.needs_server`.

The gate: with CWIST_TEST_REQUIRE_DURABLE_QUEUE set (and not "0"), whatever would be skipped fails.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from . import servers
from .observers import Observer, observe
from .proxy import Proxy

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Backend:
    """An engine and the kind of server that stands for it."""

    engine: str
    kind: str

    def __str__(self) -> str:
        return f"{self.engine}-{self.kind}"


# ---- which servers a test runs on ----


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "engine(*names): run only on these engines",
        "servers(which): 'all' kinds of server, or only the 'pinned' one",
        "needs_server: looks at what a server keeps, or meets other processes there",
        "plain: looks at what cwist_jq.aio has in a way of its own",
        "quiet: measures time or needs processors; runs after the others, two at a time",
    ):
        config.addinivalue_line("markers", line)
    # A shell starts background jobs with SIGINT ignored, and programs of the tests inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: The engine that is no server, and the fixtures that are made from one.
_MEMORY = Backend("memory", "process")
_OF_A_SERVER = {"server", "make_server", "own_server", "proxy", "proxy_url"}


def _has_memory(metafunc: pytest.Metafunc) -> bool:
    definition = metafunc.definition
    return (
        "conformance" in definition.path.parts
        and all("memory" in chosen.args for chosen in definition.iter_markers("engine"))
        and definition.get_closest_marker("needs_server") is None
        and _OF_A_SERVER.isdisjoint(metafunc.fixturenames)
    )


def _backends(metafunc: pytest.Metafunc) -> list[Backend]:
    definition = metafunc.definition
    engines = list(servers.KINDS)
    for chosen in definition.iter_markers("engine"):
        engines = [engine for engine in engines if engine in chosen.args]
    which = "all" if "conformance" in definition.path.parts else "pinned"
    mark = definition.get_closest_marker("servers")
    if mark is not None:
        which = mark.args[0]
    if definition.get_closest_marker("slow") and not servers.thorough():
        which = "pinned"
    found = []
    for engine in engines:
        kinds = servers.KINDS[engine] if which == "all" else [servers.pinned(engine)]
        if definition.path.parent.name == "tls":
            kinds = [servers.TLS_KINDS[engine]]
        # What set-up found missing in the distribution is no gap; a missing program is.
        found += [Backend(engine, kind) for kind in kinds if not servers.known_absent(engine, kind)]
    return [*found, _MEMORY] if _has_memory(metafunc) else found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", _backends(metafunc), ids=str, indirect=True)


# ---- the gate ----


_GATE = f"skipped, and {servers.STRICT_VARIABLE} is set: "


def _gate(report: Any) -> None:
    if not servers.strict() or not report.skipped or hasattr(report, "wasxfail"):
        return
    report.outcome = "failed"
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.longrepr = _GATE + reason
    report.gate = True  # for run_python: no such failure is tried again


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _gate(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _gate(report)
    return report


# ---- servers ----


class _Pool:
    """Servers that tests share; one that a test has ended or frozen is brought back."""

    def __init__(self) -> None:
        self._servers: dict[Backend, servers.Server] = {}

    def get(self, backend: Backend) -> servers.Server:
        server = self._servers.get(backend)
        if server is None:
            server = servers.start_server(backend.engine, backend.kind)
            self._servers[backend] = server
        elif server.running:
            server.resume()
        else:
            server.start()
        return server

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


@pytest.fixture(scope="session")
def _pool() -> Iterator[_Pool]:
    pool = _Pool()
    yield pool
    pool.close()


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """The engine and the kind of server of this run of the test."""
    chosen: Backend = request.param
    return chosen


@pytest.fixture
def engine(backend: Backend) -> str:
    """ "redis", "nats" or "memory"."""
    return backend.engine


@pytest.fixture
def server(backend: Backend, _pool: _Pool) -> servers.Server:
    """A running server, shared between tests: use names of your own on it, and leave it running."""
    try:
        return _pool.get(backend)
    except servers.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def make_server(backend: Backend) -> Iterator[Callable[..., Any]]:
    """Starts servers of the test's own kind with options of RedisServer or NatsServer."""
    started: list[servers.Server] = []

    def make(**options: Any) -> servers.Server:
        try:
            made = servers.start_server(backend.engine, backend.kind, **options)
        except servers.Unavailable as reason:
            pytest.skip(str(reason))
        started.append(made)
        return made

    yield make
    for made in started:
        made.close()


@pytest.fixture
def own_server(make_server: Callable[..., Any], engine: str) -> Any:
    """A server for this test alone, which it may end; what it stores survives a crash."""
    return make_server(appendonly="always") if engine == "redis" else make_server()


@pytest.fixture
def url(request: pytest.FixtureRequest, backend: Backend) -> str:
    """The URL of the shared server, or of a store that no other test has."""
    if backend == _MEMORY:
        return f"memory://test-{next(_numbers)}"
    shared: servers.Server = request.getfixturevalue("server")
    return shared.url


@pytest.fixture
def proxy(server: servers.Server) -> Iterator[Proxy]:
    """A proxy before the shared server."""
    with Proxy(server.host, server.port) as made:
        yield made


@pytest.fixture
def proxy_url(proxy: Proxy, engine: str) -> str:
    """The URL of the proxy."""
    return proxy.url(engine)


# ---- queues ----


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:60].strip("-")
    return f"{words}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def make_observer() -> Iterator[Callable[[str, str], Observer]]:
    """Makes observers for servers of the test's own: make_observer(engine, url)."""
    made: list[Observer] = []

    def make(engine: str, url: str) -> Observer:
        made.append(observe(engine, url))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def observer(engine: str, url: str, make_observer: Callable[[str, str], Observer]) -> Observer:
    """Looks at the shared server through another client."""
    return make_observer(engine, url)


@pytest.fixture
def conn(url: str) -> Iterator[Any]:
    """A connection of the library to the shared server, or store."""
    import cwist_jq

    with cwist_jq.connect(url) as made:
        yield made


@pytest.fixture
def make_queue(conn: Any, queue_name: str) -> Iterator[Callable[..., Any]]:
    """Opens queues of the test's name on the shared server: make_queue(**options)."""
    made: list[Any] = []

    def make(name: str = queue_name, **options: Any) -> Any:
        made.append(conn.queue(name, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def queue(make_queue: Callable[..., Any]) -> Any:
    """A queue with the default options."""
    return make_queue()
