from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.waiting import PATIENCE


def test_peek_changes_nothing(program: Program, queue: cwist_jq.Queue) -> None:
    ids = [str(queue.enqueue(b"job %d" % number, type="t")) for number in range(5)]
    first = queue.claim(PATIENCE)
    assert first is not None
    before = queue.stats()
    found = program("jobs", "peek", queue.name, "--most", "3", "--json").good().records
    assert [record["id"] for record in found] == ids[1:4]
    assert found[0] == {
        "id": ids[1],
        "type": "t",
        "attempts": 0,
        "dedupe_key": None,
        "headers": {},
        "size": 5,
        "payload": "job 1",
    }
    after = queue.stats()
    assert (before.ready, before.claimed) == (after.ready, after.claimed) == (4, 1)
    first.ack()
    assert [job.attempts for job in queue.claim_many(10, PATIENCE)] == [1, 1, 1, 1]


def test_key_headers_and_bytes(program: Program, queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"\xff\x1b[0m", dedupe_key="grün/7 x", headers={"A": "1", "b-c": "grün"})
    found = program("jobs", "peek", queue.name, "--json").good().record
    assert (found["dedupe_key"], found["headers"]) == ("grün/7 x", {"A": "1", "b-c": "grün"})
    assert (base64.b64decode(found["payload_base64"]), found["type"]) == (b"\xff\x1b[0m", None)


def test_a_released_job_keeps_its_id(program: Program, queue: cwist_jq.Queue) -> None:
    name = str(queue.enqueue(b"x", type=" outer spaces "))
    job = queue.claim(PATIENCE)
    assert job is not None
    job.release()
    found = program("jobs", "peek", queue.name, "--json").good().record
    assert (found["id"], found["attempts"], found["type"]) == (name, 0, " outer spaces ")


def test_a_queue_that_nobody_used(program: Program, queue: cwist_jq.Queue) -> None:
    assert program("jobs", "peek", queue.name, "--json").good().out == ""
    assert len(program("jobs", "peek", queue.name).good().out.splitlines()) == 1
    assert program("jobs", "peek", queue.name, "--raw").code == exits.NOT_FOUND


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_hostile_bytes_do_not_reach_the_terminal(
    url: str, queue: cwist_jq.Queue, locale: str
) -> None:
    queue.enqueue(b"\x1b]0;owned\x07\x9b\xff\n\r" + "\u202e\u009bgrün".encode(), type="grün")
    program = Program(url, LC_ALL=locale, PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    with program.terminal("jobs", "peek", queue.name) as terminal:
        shown = terminal.read()
        assert terminal.end() == 0
    assert "\\x1b]0;owned\\x07" in shown
    for hostile in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert hostile not in shown
    assert Program(url, LC_ALL=locale)("jobs", "peek", queue.name).code == 0


def test_raw_is_exact_and_keeps_off_terminals(
    program: Program, make_queue: Callable[..., cwist_jq.Queue]
) -> None:
    queue = make_queue()
    queue.enqueue(bytes(range(256)))
    assert program("jobs", "peek", queue.name, "--raw").raw == bytes(range(256))
    with program.terminal("jobs", "peek", queue.name, "--raw") as terminal:
        assert "could break the terminal" in terminal.read()
        assert terminal.end() == exits.REFUSED
