"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import Child

_TIMES = ("connect_timeout", "operation_timeout")


@pytest.fixture
def connect() -> Iterator[Callable[..., Any]]:
    """Opens connections that are closed after the test: connect(url, **options)."""
    made: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        made.append(cwist_jq.connect(url, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def open_queue(connect: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Opens queues, each on a connection of its own: open_queue(url, name, **options)."""
    made: list[Any] = []

    def make(url: str, name: str, **options: Any) -> Any:
        times = {key: options.pop(key) for key in _TIMES if key in options}
        made.append(connect(url, **times).queue(name, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    """Starts programs of tests.fault.programs; what still runs after the test is killed."""
    made: list[Child] = []

    def make(name: str, *words: object) -> Child:
        made.append(Child(name, *map(str, words)))
        return made[-1]

    yield make
    for one in made:
        one.__exit__()
