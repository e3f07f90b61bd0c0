"""The proxy does to bytes what it says, against a small echo server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.proxy import DOWN, UP, Proxy


def _echo(listener: socket.socket, seen: list[bytes]) -> None:
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_echo_one, args=(conn, seen), daemon=True).start()


def _echo_one(conn: socket.socket, seen: list[bytes]) -> None:
    with conn:
        while True:
            try:
                data = conn.recv(65536)
            except OSError:
                return
            if not data:
                return
            seen.append(data)
            conn.sendall(data)


@pytest.fixture
def seen() -> list[bytes]:
    """What the echo server got."""
    return []


@pytest.fixture
def relay(seen: list[bytes]) -> Iterator[Proxy]:
    """A proxy before an echo server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener, seen), daemon=True).start()
        with Proxy("127.0.0.1", listener.getsockname()[1]) as made:
            yield made
        listener.shutdown(socket.SHUT_RDWR)


def _open(relay: Proxy) -> socket.socket:
    return socket.create_connection((relay.host, relay.port), timeout=5.0)


def _rest(conn: socket.socket) -> bytes:
    got = b""
    try:
        while piece := conn.recv(65536):
            got += piece
    except ConnectionResetError:
        pass
    return got


def test_passes_everything_on(relay: Proxy) -> None:
    with _open(relay) as conn:
        conn.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert conn.recv(100) == b"*1\r\n$4\r\nPING\r\n"
        assert relay.commands() == ["PING"]
        assert relay.connections == relay.accepted == 1


def test_names_the_commands_of_nats(relay: Proxy) -> None:
    with _open(relay) as conn:
        conn.sendall(b"CONNECT {}\r\nPUB a.b 3\r\nx\r\n\r\nHPUB c 2 4\r\nabcd\r\nPING\r\n")
        conn.recv(100)
    assert relay.commands() == ["CONNECT", "PUB a.b", "HPUB c", "PING"]


@pytest.mark.parametrize(("direction", "at_server"), [(UP, b"abcd"), (DOWN, b"abcdef")])
def test_cuts_after_a_count(
    relay: Proxy, seen: list[bytes], direction: str, at_server: bytes
) -> None:
    with _open(relay) as conn:
        relay.cut_after(4, direction, reset=False)
        conn.sendall(b"abcdef")
        assert b"abcd".startswith(_rest(conn))
    end = time.monotonic() + 5.0
    while b"".join(seen) != at_server and time.monotonic() < end:
        time.sleep(0.005)
    assert b"".join(seen) == at_server
    with _open(relay) as conn:
        conn.sendall(b"again")
        assert conn.recv(100) == b"again"


def test_loses_one_reply(relay: Proxy, seen: list[bytes]) -> None:
    relay.lose_reply_to(b"XADD")
    with _open(relay) as conn:
        conn.sendall(b"first")
        assert conn.recv(100) == b"first"
        conn.sendall(b"XADD it")
        assert _rest(conn) == b""
    assert seen == [b"first", b"XADD it"]


def test_stalls_and_flows(relay: Proxy) -> None:
    with _open(relay) as conn:
        relay.stall(DOWN)
        conn.sendall(b"x")
        conn.settimeout(0.1)
        with pytest.raises(TimeoutError):
            conn.recv(10)
        relay.flow()
        conn.settimeout(5.0)
        assert conn.recv(10) == b"x"


def test_cut_ends_a_stalled_connection(relay: Proxy) -> None:
    with _open(relay) as conn:
        relay.stall()
        conn.sendall(b"x")
        time.sleep(0.05)
        assert relay.cut() == 1
        assert _rest(conn) == b""


def test_delays(relay: Proxy) -> None:
    relay.delay(0.1, UP)
    with _open(relay) as conn:
        start = time.monotonic()
        conn.sendall(b"x")
        assert conn.recv(10) == b"x"
        assert time.monotonic() - start >= 0.1


def test_refuses(relay: Proxy) -> None:
    relay.refuse()
    with _open(relay) as conn:
        assert _rest(conn) == b""
    relay.flow()
    with _open(relay) as conn:
        conn.sendall(b"x")
        assert conn.recv(10) == b"x"


def test_leads_to_another_server(relay: Proxy) -> None:
    other: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener, other), daemon=True).start()
        relay.lead_to("127.0.0.1", listener.getsockname()[1])
        with _open(relay) as conn:
            conn.sendall(b"x")
            assert conn.recv(10) == b"x"
        listener.shutdown(socket.SHUT_RDWR)
    assert other == [b"x"]


def test_crumbs(relay: Proxy, seen: list[bytes]) -> None:
    relay.crumble(3)
    with _open(relay) as conn:
        for _ in range(20):  # packets may meet on their way, but hardly all of them each time
            conn.sendall(b"0123456789")
            got = b""
            while len(got) < 10:
                got += conn.recv(65536)
            assert got == b"0123456789"
    assert len(seen) > 20


def test_tries_in_vain_are_seen(relay: Proxy) -> None:
    start = time.monotonic()
    relay.refuse()
    with _open(relay) as conn:
        assert _rest(conn) == b""
    (moment,) = relay.tries
    assert start <= moment <= time.monotonic()
    assert relay.accepted == 0
