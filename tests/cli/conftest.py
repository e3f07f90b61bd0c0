"""The command line before a running server, and queues that something happened to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

import cwist_jq
from cwist_jq.cli.app import app
from tests.cli.program import Program


@pytest.fixture
def program(url: str) -> Program:
    """The command line as a program, with the shared server's URL."""
    return Program(url)


@pytest.fixture
def invoke(url: str) -> Iterator[Callable[..., Result]]:
    """The command line inside this process, with the shared server's URL."""
    runner = CliRunner(env={"CWIST_JQ_URL": url})
    logger = logging.getLogger("cwist_jq")
    level = logger.level

    def run(*words: str, **options: Any) -> Result:
        return runner.invoke(app, list(words), **options)

    yield run
    logger.setLevel(level)  # the command line chooses one for its process, which is ours


@pytest.fixture
def bury(make_queue: Callable[..., cwist_jq.Queue]) -> Callable[..., str]:
    """Makes a dead letter: bury(payload, type=..., reason=..., headers=...); its id."""
    queue = make_queue(max_retries=1)

    def one(payload: bytes, *, reason: str = "it failed", **options: Any) -> str:
        name = queue.enqueue(payload, **options)
        job = queue.claim(10)
        assert job is not None
        assert job.id == name
        job.nack(reason)
        return str(name)

    return one
