"""The fixtures of all tests, leading to servers that encrypt.

They have the same names (`server`, `url`, `proxy_url`, `own_server` …), so that tests of the other
folders run here again: see test_again.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.certificates import Certificates
from tests.conftest import Backend
from tests.fault.conftest import connect, open_queue, start
from tests.observers import Observer
from tests.proxy import Proxy
from tests.tls.impostor import Impostor

__all__ = ["connect", "open_queue", "start"]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates of this run."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def _encrypting(certificates: Certificates) -> Iterator[Callable[[Backend], servers.Server]]:
    running: dict[Backend, servers.Server] = {}

    def get(backend: Backend) -> servers.Server:
        if backend not in running:
            tls = servers.Tls(certificates)
            running[backend] = servers.start_server(backend.engine, backend.kind, tls=tls)
        return running[backend]

    yield get
    for server in running.values():
        server.close()


@pytest.fixture
def server(backend: Backend, _encrypting: Callable[[Backend], servers.Server]) -> servers.Server:
    """A running server, shared between tests."""
    try:
        return _encrypting(backend)
    except servers.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def url(server: servers.Server) -> str:
    """The URL of the shared server."""
    return server.tls_url


@pytest.fixture
def proxy(server: servers.Server) -> Iterator[Proxy]:
    """A proxy before the shared server's encrypted port."""
    with Proxy(server.host, server.tls_port) as made:
        yield made


@pytest.fixture
def scheme(engine: str) -> str:
    """ "rediss" or "tls"."""
    return servers.TLS_SCHEMES[engine]


@pytest.fixture
def proxy_url(proxy: Proxy, scheme: str, certificates: Certificates) -> str:
    """The URL of the proxy."""
    return proxy.url(scheme) + certificates.query


@pytest.fixture
def observer(
    server: servers.Server, engine: str, make_observer: Callable[[str, str], Observer]
) -> Observer:
    """Looks at the shared server through another client."""
    return make_observer(engine, server.tls_url)


@pytest.fixture
def make_tls_server(
    make_server: Callable[..., Any], certificates: Certificates
) -> Callable[..., Any]:
    """Starts an encrypting server: make_tls_server(certificate, clients=…, **options)."""

    def make(own: str = "good", *, clients: bool = False, **options: Any) -> Any:
        return make_server(tls=servers.Tls(certificates, own, clients), **options)

    return make


class _Encrypted:
    """A server that is known by its encrypted port alone."""

    def __init__(self, server: servers.Server) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, {"url": "tls_url", "port": "tls_port"}.get(name, name))


@pytest.fixture
def own_server(make_tls_server: Callable[..., Any], engine: str) -> Any:
    """A server for this test alone, which it may end; what it stores survives a crash."""
    options = {"appendonly": "always"} if engine == "redis" else {}
    return _Encrypted(make_tls_server(**options))


@pytest.fixture
def file(certificates: Certificates) -> Callable[[str], Path]:
    """The path of one of the certificates' files."""
    return certificates.file


@pytest.fixture
def impostor(engine: str, certificates: Certificates) -> Iterator[Callable[[str], Impostor]]:
    """Starts a server with a certificate that notes what it hears: impostor(certificate)."""
    made: list[Impostor] = []

    def make(own: str) -> Impostor:
        made.append(Impostor(certificates, own, greets=engine == "nats"))
        return made[-1]

    yield make
    for one in made:
        one.close()
