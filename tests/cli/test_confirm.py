"""Commands that destroy ask first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program

_WAYS = [("purge",), ("dead", "purge")]


@pytest.fixture(params=_WAYS, ids=" ".join)
def words(
    request: pytest.FixtureRequest, queue: cwist_jq.Queue, bury: Callable[..., str]
) -> tuple[str, ...]:
    """A command that would destroy the one job or dead letter of a queue."""
    bury(b"dead")
    queue.enqueue(b"ready")
    more = ("--all",) if request.param[0] == "dead" else ()
    return (*request.param, queue.name, *more)


def _left(queue: cwist_jq.Queue, words: tuple[str, ...]) -> int:
    found = queue.stats()
    return found.dead if words[0] == "dead" else found.ready


def test_without_a_terminal_it_refuses(
    program: Program, queue: cwist_jq.Queue, words: tuple[str, ...]
) -> None:
    done = program(*words, stdin=b"y\n")
    assert (done.code, done.out) == (exits.NOT_CONFIRMED, "")
    assert "--yes" in done.err
    assert _left(queue, words) == 1


def test_with_yes_it_does_not_ask(
    program: Program, queue: cwist_jq.Queue, words: tuple[str, ...]
) -> None:
    program(*words, "--yes").good()
    assert _left(queue, words) == 0


@pytest.mark.parametrize(
    ("keys", "code", "left"),
    [
        ("y\n", exits.DONE, 0),
        ("n\n", exits.NOT_CONFIRMED, 1),
        ("\n", exits.NOT_CONFIRMED, 1),
        ("\x04", exits.NOT_CONFIRMED, 1),
        ("\x03", exits.INTERRUPTED, 1),
    ],
)
def test_on_a_terminal_it_asks(
    program: Program,
    queue: cwist_jq.Queue,
    words: tuple[str, ...],
    keys: str,
    code: int,
    left: int,
) -> None:
    with program.terminal(*words) as terminal:
        terminal.read("[y/N]")
        if code == exits.INTERRUPTED:
            terminal.interrupt()
        else:
            terminal.type(keys)
        assert terminal.end() == code
    assert _left(queue, words) == left
