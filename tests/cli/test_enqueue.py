from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.waiting import PATIENCE, eventually


def _payloads(queue: cwist_jq.Queue, count: int) -> list[bytes]:
    jobs: list[cwist_jq.Job] = []
    while len(jobs) < count:
        jobs += queue.claim_many(count - len(jobs), PATIENCE)
    queue.ack_many(jobs)
    assert queue.claim(0) is None
    return [job.payload for job in jobs]


def test_an_argument(program: Program, queue: cwist_jq.Queue) -> None:
    words = ("--type", "greet", "--header", "traceparent=00-ab", "--header", "Note=a=b")
    printed = program("enqueue", queue.name, "grün", *words).good().out
    job = queue.claim(PATIENCE)
    assert job is not None
    assert (job.id + "\n", job.payload, job.type) == (printed, "grün".encode(), "greet")
    assert dict(job.headers) == {"traceparent": "00-ab", "Note": "a=b"}


def test_a_file_byte_for_byte(program: Program, queue: cwist_jq.Queue, tmp_path: Path) -> None:
    data = bytes(range(256)) + b"\n\n"
    (tmp_path / "body").write_bytes(data)
    found = program("enqueue", queue.name, "--file", str(tmp_path / "body"), "--json").good().record
    again = program("enqueue", queue.name, "--file", "-", "--json", stdin=data).good().record
    assert found["duplicate"] is again["duplicate"] is False
    assert _payloads(queue, 2) == [data, data]


def test_lines(program: Program, queue: cwist_jq.Queue, tmp_path: Path) -> None:
    lines = [b"one", b"", b"\xff\x00", b"x" * 200_000, b"last"]
    text = b"\n".join(lines)  # without a line end at the end
    assert program("enqueue", queue.name, stdin=text).good().out == "5 jobs stored\n"
    (tmp_path / "lines").write_bytes(text + b"\n")
    done = program("enqueue", queue.name, "--lines", "--file", str(tmp_path / "lines"), "--json")
    assert len({record["id"] for record in done.good().records}) == 5
    assert _payloads(queue, 10) == lines * 2


def test_many_lines(program: Program, queue: cwist_jq.Queue) -> None:
    lines = [b"%d" % number for number in range(12_345)]
    done = program("enqueue", queue.name, stdin=b"\n".join(lines) + b"\n")
    assert done.good().out == "12345 jobs stored\n"
    assert queue.stats().ready == len(lines)


def test_lines_are_sent_as_they_come(program: Program, queue: cwist_jq.Queue) -> None:
    running = program.start("enqueue", queue.name, stdin=-1)
    assert running.stdin is not None
    running.stdin.write(b"first\nhal")
    running.stdin.flush()
    job = queue.claim(PATIENCE)
    assert job is not None
    assert job.payload == b"first"
    job.ack()
    out, _ = running.communicate(b"f\n", timeout=PATIENCE)
    assert (running.returncode, out) == (0, b"2 jobs stored\n")
    assert _payloads(queue, 1) == [b"half"]


def test_no_lines(program: Program, queue: cwist_jq.Queue) -> None:
    assert program("enqueue", queue.name).good().out == "0 jobs stored\n"


def test_a_key(program: Program, queue: cwist_jq.Queue) -> None:
    first = program("enqueue", queue.name, "x", "--key", "k").good().out
    second = program("enqueue", queue.name, "y", "--key", "k")
    assert (second.code, second.out) == (0, first)
    assert "nothing was stored" in second.err
    third = program("enqueue", queue.name, "z", "--key", "k", "--json").good().record
    assert third == {"id": first.strip(), "duplicate": True}
    assert _payloads(queue, 1) == [b"x"]


def test_a_delay(program: Program, queue: cwist_jq.Queue) -> None:
    begin = time.monotonic()
    program("enqueue", queue.name, "late", "--delay", "1.5").good()
    assert queue.stats().delayed == 1
    assert queue.claim(0) is None
    assert queue.claim(PATIENCE) is not None
    assert time.monotonic() - begin >= 1.5


@pytest.mark.parametrize(
    "words",
    [
        ("x", "--file", "-"),
        ("x", "--lines"),
        ("--key", "k"),
        ("x", "--header", "novalue"),
        ("x", "--header", "A=1", "--header", "A=2"),
        ("x", "--header", "Nats-Rollup=all"),
        ("x", "--delay", "-1"),
        ("x", "--delay", "nan"),
        ("x", "--type", "a\nb"),
    ],
)
def test_what_makes_no_sense_is_refused(
    invoke: Callable[..., Any], queue: cwist_jq.Queue, words: tuple[str, ...]
) -> None:
    assert invoke("enqueue", queue.name, *words).exit_code == exits.USAGE
    assert queue.stats().ready == 0


def test_a_terminal_is_not_read_in_silence(program: Program, queue: cwist_jq.Queue) -> None:
    with program.terminal("enqueue", queue.name) as terminal:
        assert "pipe lines in" in terminal.read()
        assert terminal.end() == exits.USAGE


def test_ctrl_c_tells_what_was_stored(program: Program, queue: cwist_jq.Queue) -> None:
    with program.terminal("enqueue", queue.name, "--file", "-", "--lines") as terminal:
        terminal.type("one\ntwo\n")
        terminal.read("2/?")  # the bar has counted them, which is after they are stored
        assert queue.stats().ready == 2
        terminal.type("\x03")
        assert terminal.end() == exits.INTERRUPTED
        assert "2 jobs stored" in terminal.read()


def test_an_outage_tells_what_was_stored(proxy: Any, proxy_url: str, queue: cwist_jq.Queue) -> None:
    running = Program(proxy_url).start(
        "enqueue", queue.name, "--timeout", "0.5", stdin=-1, stderr=-1
    )
    assert running.stdin is not None
    running.stdin.write(b"one\n")
    running.stdin.flush()
    eventually(lambda: queue.stats().ready == 1)
    proxy.close()
    out, err = running.communicate(b"two\n", timeout=2 * PATIENCE)
    assert running.returncode == exits.UNREACHABLE
    assert out == b"1 job stored\n"
    assert err.startswith(b"cwist-jq: ")
