"""The observer as that of one engine, for tests that look at its own layout."""

from __future__ import annotations

import pytest

from tests.conformance.helpers import nats_of, redis_of
from tests.observers import NatsObserver, Observer, RedisObserver


@pytest.fixture
def redis(observer: Observer) -> RedisObserver:
    """The observer of Redis."""
    return redis_of(observer)


@pytest.fixture
def nats(observer: Observer) -> NatsObserver:
    """The observer of NATS."""
    return nats_of(observer)
