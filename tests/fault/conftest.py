"""Fixtures of the fault tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
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

    def make(name: str, *words: object, env: dict[str, str] | None = None) -> Child:
        made.append(Child(name, *map(str, words), env=env))
        return made[-1]

    yield make
    for one in made:
        one.__exit__()


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program whose clock can be set and whose names can be lost."""
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(source), "-o", str(library)]
    subprocess.run([*command, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}
