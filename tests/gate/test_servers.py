"""The servers that tests start behave as the tests lean on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.observers import Observer

pytestmark = pytest.mark.servers("all")


def test_data_survives_a_crash_and_the_port_stays(
    own_server: Any, engine: str, make_observer: Callable[[str, str], Observer], queue_name: str
) -> None:
    port = own_server.port
    make_observer(engine, own_server.url).put(queue_name, b"x")
    own_server.restart(crash=True)
    assert own_server.port == port
    assert make_observer(engine, own_server.url).ready_and_claimed(queue_name) == 1


def test_never_a_default_port(server: servers.Server) -> None:
    assert servers.PORTS[0] <= server.port < servers.PORTS[1]
    assert server.port not in (4222, 6222, 6379, 8222)


def test_a_paused_server_keeps_its_connections(
    own_server: Any, engine: str, make_observer: Callable[[str, str], Observer], queue_name: str
) -> None:
    own_server.pause()
    own_server.resume()
    make_observer(engine, own_server.url).put(queue_name, b"x")


def test_passwords(make_server: Callable[..., Any], engine: str, make_observer: Any) -> None:
    user = "worker" if engine == "nats" else None
    made = make_server(user=user, password="p@ss/word")
    make_observer(engine, made.url).put("queue", b"x")


@pytest.mark.engine("redis")
def test_acl_file(make_server: Callable[..., Any], make_observer: Any) -> None:
    acl = "user default off\nuser worker on >secret ~* +@all\n"
    made = make_server(acl=acl, user="worker", password="secret")
    make_observer("redis", made.url).put("queue", b"x")


@pytest.mark.engine("redis")
def test_full_server(make_server: Callable[..., Any], make_observer: Any) -> None:
    import redis

    made = make_server(maxmemory=1)
    with pytest.raises(redis.OutOfMemoryError):
        make_observer("redis", made.url).put("queue", b"x")


@pytest.mark.engine("nats")
def test_max_payload(make_server: Callable[..., Any]) -> None:
    assert make_server(max_payload=4096).info()["max_payload"] == 4096


_ORPHANS = """
import os, sys
from tests import servers
made = [servers.start_server("redis"), servers.start_server("nats")]
made[0].pause()
print(*[m.pid for m in made], *[m.folder for m in made], flush=True)
sys.stdin.read() if sys.argv[1] == "wait" else os.kill(os.getpid(), 9)
"""


def _gone(pid: int) -> bool:
    # Reading is refused in one of two ways when the process goes in the meantime.
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_servers_end_with_the_process_that_started_them(how: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _ORPHANS, "wait"],
        cwd=servers.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        process.send_signal(how)
        process.wait(10)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        left = [word for word in words[:2] if not _gone(int(word))]
        left += [word for word in words[2:] if Path(word).exists()]
        if not left:
            return
        time.sleep(0.02)
    pytest.fail(f"still there: {left}")
