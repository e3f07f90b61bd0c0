from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.waiting import PATIENCE, eventually


def _cells(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if name in line.split()]
    return line.split()


def test_what_a_queue_holds(
    program: Program, queue: cwist_jq.Queue, bury: Callable[..., str]
) -> None:
    bury(b"dead")
    queue.enqueue_many([b"a", b"b", b"c"])
    job = queue.claim(PATIENCE)
    assert job is not None
    table = program("stats", queue.name).good().out
    assert table.splitlines()[0].split() == (
        ["queue", "ready", "claimed", "delayed", "dead", "oldest", "ready", "consumers", "state"]
    )
    assert _cells(table, queue.name)[:5] == [queue.name, "2", "1", "0", "1"]
    record = program("stats", queue.name, "--json").good().record
    assert {name: record[name] for name in ("ready", "claimed", "delayed", "dead", "paused")} == {
        "ready": 2,
        "claimed": 1,
        "delayed": 0,
        "dead": 1,
        "paused": False,
    }
    job.ack()


def test_all_queues(make_server: Callable[..., Any], engine: str) -> None:
    server = make_server()
    with cwist_jq.connect(server.url) as conn:
        for name in ("emails", "a.b:c", "reports"):
            conn.queue(name).enqueue(b"x")
        conn.queue("only-asked").stats()
    found = Program(server.url)("stats", "--json").good().records
    assert [record["queue"] for record in found] == ["a.b:c", "emails", "reports"]
    assert {record["ready"] for record in found} == {1}


def test_no_queue_at_all(make_server: Callable[..., Any]) -> None:
    done = Program(make_server().url)("stats").good()
    assert len(done.out.splitlines()) == 1


def test_pause_and_resume(program: Program, queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"x")
    assert program("pause", queue.name).good().out == f"{queue.name} is paused\n"
    assert _cells(program("stats", queue.name).out, queue.name)[-1] == "paused"
    assert queue.claim(0) is None
    found = program("resume", queue.name, "--json").good().record
    assert found == {"queue": queue.name, "paused": False}
    assert queue.claim(PATIENCE) is not None


def test_watching_through_a_pipe(program: Program, queue: cwist_jq.Queue) -> None:
    running = program.start("stats", queue.name, "--watch", "--interval", "0.1", "--json")
    assert running.stdout is not None
    out = running.stdout
    try:
        assert json.loads(out.readline())["ready"] == 0
        queue.enqueue(b"x")
        eventually(lambda: json.loads(out.readline())["ready"] == 1)
    finally:
        running.kill()
        running.communicate()


def test_watching_on_a_terminal(program: Program, queue: cwist_jq.Queue) -> None:
    queue.enqueue_many([b"x"] * 77)
    with program.terminal("stats", queue.name, "--watch", "--interval", "0.1") as terminal:
        terminal.read(" 77 ")
        queue.enqueue_many([b"x"] * 800)
        terminal.read(" 877 ")
        terminal.type("\x03")
        assert terminal.end() == exits.INTERRUPTED
        text = terminal.read()
        assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is back
        assert "Traceback" not in text


def test_watching_outlives_the_server(make_server: Callable[..., Any]) -> None:
    server = make_server()
    name = "outage"
    words = ("stats", name, "--watch", "--interval", "0.1", "--timeout", "0.3")
    running = Program(server.url).start(*words)
    assert running.stdout is not None
    out = running.stdout
    try:
        eventually(lambda: b" open" in out.readline())
        server.stop()
        eventually(lambda: b"no answer" in out.readline())
        server.start()
        eventually(lambda: b" open" in out.readline())
    finally:
        running.kill()
        running.communicate()
