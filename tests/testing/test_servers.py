"""The private servers for people's own tests, whatever becomes of the program that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq.testing import NatsServer, RedisServer
from cwist_jq.testing import servers as own
from tests import servers
from tests.waiting import eventually

Kind = type[RedisServer] | type[NatsServer]
KINDS: dict[str, Kind] = {"redis": RedisServer, "nats": NatsServer}


@pytest.fixture(params=["redis", "nats"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """The class of an engine's servers, with the pinned program on PATH."""
    try:
        program = servers.program(request.param, servers.pinned(request.param))
    except servers.Unavailable as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return KINDS[request.param]


def test_only_who_has_the_url_gets_in(kind: Kind) -> None:
    with kind() as server:
        scheme, _, rest = server.url.partition("://")
        address = rest.rpartition("@")[2]
        with cwist_jq.connect(server.url) as conn:
            assert conn.queue("q").enqueue(b"x")
        with pytest.raises(cwist_jq.Denied):
            cwist_jq.connect(f"{scheme}://{address}").queue("q").enqueue(b"x")


def test_two_at_once_are_apart(kind: Kind) -> None:
    with kind() as one, kind() as two:
        assert one.url != two.url
        with cwist_jq.connect(one.url) as first, cwist_jq.connect(two.url) as second:
            first.queue("q").enqueue(b"x")
            assert second.queue("q").claim(0) is None


def test_a_taken_port_is_no_matter(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program may take the port that was just found free: the next one is tried."""
    with kind() as first:
        taken = int(first.url.rpartition(":")[2])
        ports = [taken, taken, own._free_port()]
        monkeypatch.setattr(own, "_free_port", lambda: ports.pop(0))
        with kind() as second, cwist_jq.connect(second.url) as conn:
            assert conn.queue("q").enqueue(b"x")
    assert ports == []


def test_a_server_that_does_not_start_says_why(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kind, "_config", lambda self, folder: "no such setting {\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(own.StartFailed, match=r"no such setting|did not come up"):
        kind().start()
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import sys, time
from cwist_jq.testing import {kind}
server = {kind}()
server.start()
print(server._folder, server.url.rpartition(":")[2], flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def _program(kind: Kind) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(kind=kind.__name__)],
        cwd=servers.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_with_the_program_that_started_it(kind: Kind, how: signal.Signals) -> None:
    """Tests are killed too (by a time limit, a closed terminal): no server and no folder stays."""
    with _program(kind) as process:
        assert process.stdout is not None
        folder, port = process.stdout.readline().split()
        assert Path(folder).is_dir()
        process.send_signal(how)
        process.wait()
    eventually(lambda: not Path(folder).exists())
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", int(port)))
