"""The observer as that of one engine, for tests that look at its own layout; and `--api aio`.

With that option the tests run through cwist_jq.aio instead of cwist_jq, but for those that are
marked as `plain`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import cwist_jq
from tests.conformance.helpers import nats_of, redis_of
from tests.observers import NatsObserver, Observer, RedisObserver


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--api", choices=["plain", "aio"], default="plain", help="what is tested")


def _through_asyncio(config: pytest.Config) -> bool:
    # The option is known when the command line names this folder.
    return bool(config.getoption("--api", "plain") == "aio")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is tested of cwist_jq alone."""
    if _through_asyncio(config):
        out = [item for item in items if item.get_closest_marker("plain") is not None]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture(autouse=True)
def _api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts cwist_jq.aio in the place of cwist_jq."""
    if not _through_asyncio(request.config):
        yield
        return
    from cwist_jq.aio import connection
    from tests.conformance.through_asyncio import Loop

    monkeypatch.setattr(connection, "cwist_jq", SimpleNamespace(**vars(cwist_jq)))
    loop = Loop()
    monkeypatch.setattr(cwist_jq, "connect", loop.connect)
    yield
    loop.close()


@pytest.fixture
def redis(observer: Observer) -> RedisObserver:
    """The observer of Redis."""
    return redis_of(observer)


@pytest.fixture
def nats(observer: Observer) -> NatsObserver:
    """The observer of NATS."""
    return nats_of(observer)
