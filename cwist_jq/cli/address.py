"""The URL of a server, taken apart for the probes. The library checks URLs; here they are right."""

from __future__ import annotations

import socket
import ssl
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

__all__ = ["Address", "client_context", "open_socket", "parse"]

_PORTS = {"redis": 6379, "rediss": 6379, "nats": 4222, "tls": 4222}


class Address(NamedTuple):
    """Where a server is and how to speak to it."""

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    user: str | None
    password: str | None
    path: str  # of a unix socket
    database: int
    options: dict[str, str]  # tls_ca and so on

    @property
    def engine(self) -> str:
        """The kind of server: redis or nats."""
        return "nats" if self.scheme in {"nats", "tls"} else "redis"

    @property
    def encrypted(self) -> bool:
        """Whether TLS is asked for."""
        return self.scheme in {"rediss", "tls"}

    @property
    def label(self) -> str:
        """The URL without its credentials and options."""
        if self.scheme == "unix":
            return f"unix://{self.path}"
        places = ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts
        )
        return f"{self.scheme}://{places}"


def parse(url: str) -> Address:
    """Takes a URL apart that the library has accepted."""
    scheme, _, rest = url.partition("://")
    query = ""
    if scheme in {"rediss", "tls"}:
        rest, _, query = rest.partition("?")
    credentials, at, rest = rest.rpartition("@")
    user, password = _credentials(credentials) if at else (None, None)
    if scheme == "unix":
        path, _, query = rest.partition("?")
        options = dict(parse_qsl(query))
        return Address(scheme, (), user, password, unquote(path), int(options.get("db", 0)), {})
    if scheme in {"redis", "rediss"}:
        rest, _, database = rest.partition("/")
    else:
        database = ""
    hosts = tuple(_host(one, _PORTS.get(scheme, 0)) for one in rest.split(","))
    options = {
        name: unquote(value) for name, _, value in (one.partition("=") for one in query.split("&"))
    }
    return Address(scheme, hosts, user, password, "", int(database or 0), options)


def _credentials(text: str) -> tuple[str | None, str | None]:
    user, _, password = text.partition(":")
    return unquote(user) or None, unquote(password) or None


def _host(text: str, port: int) -> tuple[str, int]:
    place = text.rpartition("://")[2].rstrip("/")
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        return host, int(rest[1:] or port)
    host, _, number = place.partition(":")
    return host, int(number or port)


def open_socket(host: str, port: int, timeout: float) -> socket.socket:
    """A TCP connection."""
    return socket.create_connection((host, port), timeout=timeout)


def client_context(options: dict[str, str]) -> ssl.SSLContext:
    """TLS by the options of the URL, as the library does it."""
    context = ssl.create_default_context(cafile=options.get("tls_ca"))
    if options.get("tls_verify") == "no":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = options.get("tls_cert")
    if certificate is not None:
        context.load_cert_chain(certificate, options.get("tls_key"))
    return context
