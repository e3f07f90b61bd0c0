from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.waiting import PATIENCE

Bury = Callable[..., str]

#: It names the window, rings, clears, types, turns the line around, and is no UTF-8.
HOSTILE = b"\x1b]0;owned\x07\x1b[2J\x9b6n\xff\n" + "\u202e\u009b".encode()
HOSTILE_TEXT = "\x1b]0;owned\x07\x1b[2J\u202e\u009b grün"


def test_list(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    ids = [bury(b"x" * size, type=f"t{size % 2}", reason=f"why {size}") for size in range(5)]
    found = program("dead", "list", queue.name, "--json").good().records
    assert [letter["id"] for letter in found] == ids[::-1]
    assert {letter["cause"] for letter in found} == {"nacked"}
    assert [letter["reason"] for letter in found] == [f"why {size}" for size in range(5)][::-1]
    oldest = program("dead", "list", queue.name, "--json", "--oldest", "--most", "2").good().records
    assert [letter["id"] for letter in oldest] == ids[:2]
    odd = program("dead", "list", queue.name, "--json", "--type", "t1").good().records
    assert [letter["id"] for letter in odd] == [ids[3], ids[1]]


def test_the_table_says_what_it_left_out(
    program: Program, queue: cwist_jq.Queue, bury: Bury
) -> None:
    for _ in range(3):
        bury(b"x")
    done = program("dead", "list", queue.name, "--most", "2")
    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert done.err == "cwist-jq: 2 of 3; --all shows the rest\n"
    assert len(program("dead", "list", queue.name, "--all").good().out.splitlines()) == 4


def test_more_letters_than_a_page(
    program: Program, make_queue: Callable[..., cwist_jq.Queue]
) -> None:
    queue = make_queue()
    queue.enqueue_many([b"x"] * 250)
    jobs: list[cwist_jq.Job] = []
    while len(jobs) < 250:
        jobs += queue.claim_many(250, PATIENCE)
    for job in jobs:
        job.nack(dead=True)
    found = program("dead", "list", queue.name, "--all", "--json").good().records
    assert len({letter["id"] for letter in found}) == 250
    assert program("dead", "requeue", queue.name, "--all").good().out == (
        "250 dead letters requeued\n"
    )
    assert queue.stats().ready == 250


def test_show(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    name = bury(b"hello", type="greet", reason="no mood", headers={"A": "1"})
    text = program("dead", "show", queue.name, name).good().out
    for line in ("cause:     nacked", "reason:    no mood", "header:    A: 1", "attempts:  1"):
        assert line in text.splitlines()
    assert text.endswith("\n\nhello\n")
    record = program("dead", "show", queue.name, name, "--json").good().record
    assert (record["payload"], record["headers"], record["type"]) == ("hello", {"A": "1"}, "greet")


def test_binary_letters(url: str, queue: cwist_jq.Queue, bury: Bury) -> None:
    """CASES P05: in a C locale, on a terminal and through a pipe."""
    name = bury(HOSTILE, reason=HOSTILE_TEXT, headers={"A": "\u202e grün"})
    plain = Program(url, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    utf8 = Program(url, LC_ALL="C.UTF-8")
    for program in (plain, utf8):
        for words in (("dead", "list", queue.name), ("dead", "show", queue.name, name)):
            for form in ([], ["--json"]):
                done = program(*words, *form)
                assert (done.code, done.err) == (0, "")
                _harmless(done.out)
                with program.terminal(*words, *form) as terminal:
                    shown = terminal.read()
                    assert terminal.end() == 0
                _harmless(shown)
                assert "owned" in shown
    assert plain("dead", "show", queue.name, name, "--raw").raw == HOSTILE
    record = plain("dead", "show", queue.name, name, "--json").record
    assert base64.b64decode(record["payload_base64"]) == HOSTILE
    assert record["reason"] == HOSTILE_TEXT


def _harmless(shown: str) -> None:
    for hostile in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e", "\x00"):
        assert hostile not in shown


def test_markup_is_not_read(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    bury(b"x", type="[red]a[/red]", reason=":bug: [link=http://x]y[/link]")
    with program.terminal("dead", "list", queue.name) as terminal:
        shown = terminal.read()
    assert "[red]a[/red]" in shown
    assert ":bug: [link=http://x]y[/link]" in shown


def test_raw_keeps_off_terminals(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    hostile, text = bury(HOSTILE), bury(b"two\nlines\n")
    with program.terminal("dead", "show", queue.name, hostile, "--raw") as terminal:
        assert "owned" not in terminal.read()
        assert terminal.end() == exits.REFUSED
    with program.terminal("dead", "show", queue.name, text, "--raw") as terminal:
        assert terminal.read() == "two\r\nlines\r\n"


def test_requeue(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    first, second = bury(b"1"), bury(b"2")
    done = program("dead", "requeue", queue.name, second, "4711", first, "--json")
    assert (done.code, done.record) == (exits.NOT_FOUND, {"queue": queue.name, "requeued": 2})
    assert "4711" in done.err
    jobs = queue.claim_many(5, PATIENCE)
    jobs += queue.claim_many(5, 0.1) if len(jobs) < 2 else []
    assert {(job.id, job.attempts) for job in jobs} == {(first, 1), (second, 1)}


def test_requeue_by_type(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    bury(b"1", type="a")
    kept = bury(b"2")
    assert program("dead", "requeue", queue.name, "--all", "--type", "a").good().out == (
        "1 dead letter requeued\n"
    )
    assert [letter.id for letter in queue.dead] == [kept]
    assert program("dead", "requeue", queue.name, "--all", "--type", "").good().out == (
        "1 dead letter requeued\n"
    )


def test_purge(program: Program, queue: cwist_jq.Queue, bury: Bury) -> None:
    ids = [bury(b"1", type="a"), bury(b"2"), bury(b"3")]
    done = program("dead", "purge", queue.name, ids[2], "--yes").good()
    assert done.out == "1 dead letter purged\n"
    words = ("dead", "purge", queue.name, "--all", "--yes", "--json")
    assert program(*words, "--older-than", "3600").good().record["purged"] == 0
    assert program(*words, "--type", "a").good().record["purged"] == 1
    assert program(*words).good().record == {"queue": queue.name, "purged": 1}
    assert queue.dead_count() == 0


@pytest.mark.parametrize(
    "words",
    [
        ("requeue",),
        ("requeue", "1", "--all"),
        ("requeue", "1", "--type", "t"),
        ("purge", "--yes"),
        ("purge", "1", "--older-than", "5", "--yes"),
        ("list", "--most", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(
    program: Program, queue_name: str, words: tuple[str, ...]
) -> None:
    done = program("dead", words[0], queue_name, *words[1:])
    assert (done.code, done.out) == (exits.USAGE, "")
