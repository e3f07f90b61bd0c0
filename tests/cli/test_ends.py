"""How a run of the program ends: exit codes, what stands on stderr, and no password anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.servers import ROOT, free_port
from tests.waiting import PATIENCE


def test_every_error_of_the_library_has_a_code() -> None:
    names = [name for name in cwist_jq.__all__ if isinstance(getattr(cwist_jq, name), type)]
    errors = [c for n in names if issubclass(c := getattr(cwist_jq, n), cwist_jq.Error)]
    codes = {kind.__name__: exits.code_of(kind("text")) for kind in errors}
    assert {name for name, code in codes.items() if code == exits.FAILED} == {
        "Closed",
        "Error",
        "Interrupted",
        "LeaseLost",
        "NotSent",
        "OutOfMemory",
        "ProtocolError",
    }
    assert set(exits._BY_CLASS) <= set(codes)


def test_no_server_is_named() -> None:
    done = Program()("stats")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert done.err == (
        "cwist-jq: no server is named: pass --url, or set CWIST_JQ_URL "
        "(see cwist-jq stats --help)\n"
    )


def test_the_engine_in_memory_is_of_no_use_here() -> None:
    done = Program("memory://x")("stats")
    assert (done.code, "inside one process" in done.err) == (exits.USAGE, True)


@pytest.mark.parametrize("engine", ["redis", "nats"])
def test_no_server_answers(engine: str) -> None:
    done = Program(f"{engine}://127.0.0.1:{free_port()}")("stats", "q", "--timeout", "0.3")
    assert done.code == exits.UNREACHABLE
    assert done.err.count("\n") == 1


def test_errors_in_json(program: Program, queue_name: str) -> None:
    done = program("dead", "show", queue_name, "4711", "--json")
    assert (done.code, done.out) == (exits.NOT_FOUND, "")
    found = json.loads(done.err)
    assert found["exit_code"] == exits.NOT_FOUND
    assert "4711" in found["error"]


def test_a_wrong_option_is_an_error_in_json_too() -> None:
    done = Program()("--json", "stats", "--intervall", "1")
    assert (done.code, json.loads(done.err)["exit_code"]) == (exits.USAGE, exits.USAGE)


def test_options_stand_before_or_behind_the_command(url: str, queue_name: str) -> None:
    before = Program()("--url", url, "--json", "stats", queue_name).good()
    behind = Program()("stats", "--url", url, "--json", queue_name).good()
    assert before.record == behind.record


def test_an_argument_of_the_user_does_not_reach_the_terminal_raw(program: Program) -> None:
    done = program("stats", "bad\x1b[31mname")
    assert done.code == exits.USAGE
    assert "\x1b" not in done.err


@pytest.mark.engine("nats")
def test_a_payload_that_is_too_large(program: Program, queue_name: str) -> None:
    done = program("enqueue", queue_name, "--file", "-", stdin=b"x" * (2 << 20))
    assert (done.code, done.out) == (exits.REFUSED, "")


def test_ctrl_c(program: Program, queue_name: str) -> None:
    running = program.start("stats", "--watch", queue_name, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (exits.INTERRUPTED, b"")


def test_a_reader_that_goes_away(program: Program, queue_name: str) -> None:
    running = program.start(
        "stats", "--watch", "--interval", "0.1", queue_name, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    assert running.stdout.readline()
    running.stdout.close()
    assert running.stderr is not None
    with running.stderr as err:
        assert err.read() == b""
    assert running.wait(PATIENCE) == exits.PIPE_CLOSED


def test_a_reader_that_was_never_there(program: Program, queue_name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    running = program.start("stats", queue_name, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, err = running.communicate(timeout=3 * PATIENCE)
    assert (running.returncode, err) == (exits.PIPE_CLOSED, b"")


# ---- passwords ----


@pytest.fixture
def locked(make_server: Callable[..., Any], engine: str) -> Any:
    """A server that wants a password."""
    if engine == "redis":
        return make_server(password="s3cr/t:@pass", user="default")
    return make_server(user="ann", password="s3cr/t:@pass")


_COMMANDS = [
    ["enqueue", "q", "x"],
    ["stats"],
    ["stats", "q"],
    ["jobs", "peek", "q"],
    ["dead", "list", "q"],
    ["dead", "show", "q", "4711"],
    ["purge", "q", "--yes"],
    ["doctor"],
    ["doctor", "q"],
    ["bench", "--jobs", "10"],
]


@pytest.mark.parametrize("right", [True, False])
def test_a_password_never_appears(locked: Any, *, right: bool) -> None:
    word = "s3cr/t:@pass"
    url = locked.url
    if not right:
        word = "wr0ng-one"
        url = f"{url.partition('://')[0]}://ann:{word}@127.0.0.1:{locked.port}"
    for number, words in enumerate(_COMMANDS):
        done = Program(url)(*words, *(["--json"] if number % 2 == right else []))
        assert (done.code in {0, exits.NOT_FOUND, exits.FAILED}) is right or words[0] == "doctor"
        for secret in (word, "s3cr", url.partition("://")[2]):
            assert secret not in done.out + done.err


def test_a_wrong_url_is_not_repeated() -> None:
    done = Program("redis://ann:s3cret@host:99999")("stats", "q")
    assert done.code == exits.USAGE
    assert "s3cret" not in done.err


# ---- without the extra, and from other places ----


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_line_says_what_to_install(missing: str, tmp_path: Path) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('no', name={missing!r})\n")
    done = subprocess.run(
        [sys.executable, "-m", "cwist_jq", "--help"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (exits.NO_EXTRA, "")
    assert done.stderr == (
        f'cwist-jq: {missing} is not installed; run: pip install "cwist_jq[cli]"\n'
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    done = Program(_CWIST_JQ_COMPLETE=f"{shell}_source")()
    assert done.code == 0
    assert "cwist-jq" in done.out


def test_completion_of_a_word() -> None:
    done = Program(_CWIST_JQ_COMPLETE="bash_complete", COMP_WORDS="cwist-jq dea", COMP_CWORD="1")()
    assert done.out == "plain,dead\n"


def test_every_command_explains_itself() -> None:
    names = ["bench", "dead", "dev", "doctor", "enqueue", "jobs", "pause", "purge", "resume"]
    listed = Program()("--help").good().out
    for name in [*names, "stats", "worker"]:
        assert f"\n  {name} " in listed
        assert "Usage: cwist-jq" in Program()(name, "--help").good().out


def test_the_version() -> None:
    assert cwist_jq.__version__ in Program()("--version").good().out
