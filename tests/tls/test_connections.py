"""Encrypted connections that stall, break, or meet a server that does not encrypt."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cwist_jq
from tests import servers
from tests.certificates import Certificates
from tests.fault.support import (
    SLACK,
    Child,
    blocked_claim,
    fails_within,
    must_claim,
    took,
)
from tests.observers import RedisObserver
from tests.proxy import UP, Proxy
from tests.tls.impostor import Impostor
from tests.waiting import Background, eventually

MIB = 1024 * 1024


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


# ---- payloads ----


def test_a_big_payload_both_ways(
    make_tls_server: Callable[..., Any],
    open_queue: Callable[..., Any],
    queue_name: str,
    engine: str,
) -> None:
    size = 16 * MIB if engine == "redis" else 7 * MIB
    options = {} if engine == "redis" else {"max_payload": 8 * MIB}
    queue = open_queue(make_tls_server(**options).tls_url, queue_name)
    payload = os.urandom(size)
    queue.enqueue(payload)
    job = must_claim(queue)
    assert job.payload == payload
    job.ack()


def _answer_in_records(listener: socket.socket, context: ssl.SSLContext, *answer: bytes) -> None:
    """Answers the first words of a client, each part a record of TLS, and all in one packet."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_side=True)
    client, _ = listener.accept()
    with client:
        client.settimeout(5.0)
        for step in (session.do_handshake, session.read):
            while True:
                try:
                    step()
                    break
                except ssl.SSLWantReadError:
                    client.sendall(outgoing.read())
                    incoming.write(client.recv(65536))
        for part in answer:
            session.write(part)
        client.sendall(outgoing.read())


def test_records_that_come_together(certificates: Certificates) -> None:
    """The socket tells of them once; what waits behind the first is not forgotten."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.file("good.pem"), certificates.file("good.key"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = (b"*2\r\n$7\r\n", b"version\r\n", b"$5\r\n7.0.0", b"\r\n")
        server = Background(_answer_in_records, listener, context, *answer)
        url = f"rediss://127.0.0.1:{listener.getsockname()[1]}{certificates.query}"
        # The server ends after that, which a connection that is there does not mind.
        cwist_jq.connect(url, operation_timeout=1.0, connect_timeout=1.0).close()
        server.result()


# ---- the other side does not encrypt, or we do not ----


@pytest.fixture
def plain(backend: Any) -> Iterator[servers.Server]:
    """A server without TLS."""
    with servers.start_server(backend.engine) as server:
        yield server


def test_a_server_that_does_not_encrypt(plain: servers.Server, scheme: str, engine: str) -> None:
    with pytest.raises(cwist_jq.Error) as caught:
        cwist_jq.connect(
            f"{scheme}://u:never-told@{plain.host}:{plain.port}",
            connect_timeout=2.0,
            operation_timeout=3.0,
        )
    if engine == "redis":
        # Its answer to our hello comes only when that happens to hold a line break.
        assert "is this port for TLS" in str(caught.value)
    else:
        assert "Secure Connection not available" in str(caught.value)
    assert b"never-told" not in plain.log.read_bytes()


@pytest.mark.parametrize("answer", [b"-ERR unknown command\r\n", b"HTTP/1.1 400 Bad\r\n\r\n"])
def test_a_server_that_answers_in_plain_text(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_once() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(1)
                client.sendall(answer)
                client.recv(65536)

        server = Background(answer_once)
        with (
            took(0.0, 1.0),
            pytest.raises(cwist_jq.ProtocolError, match="does not speak TLS on this port"),
        ):
            cwist_jq.connect(f"rediss://127.0.0.1:{listener.getsockname()[1]}")
        server.result()


def test_a_plain_url_for_a_server_that_encrypts(server: Any, engine: str) -> None:
    """The text says what to write."""
    if engine == "redis":
        wanted = "a port for TLS needs rediss://"
    else:
        wanted = "certificate verify failed: "  # libnats encrypts of itself then
    with pytest.raises(cwist_jq.Error, match=wanted):
        cwist_jq.connect(f"{engine}://{server.host}:{server.tls_port}", operation_timeout=0.5)


@pytest.mark.engine("nats")
def test_libnats_does_not_encrypt_by_itself(
    server: Any, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the certificate would do: without our rules it is not good enough."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.file("ca.pem")))
    with pytest.raises(cwist_jq.Unsupported, match="write tls:// for nats://"):
        cwist_jq.connect(f"nats://{server.host}:{server.tls_port}")


@pytest.mark.engine("nats")
def test_each_server_of_a_list_has_its_own_name(
    server: Any, impostor: Callable[[str], Impostor], certificates: Certificates
) -> None:
    """The wrong one is passed over, whichever is tried first."""
    fake = impostor("name")
    url = f"tls://127.0.0.1:{fake.tls_port},127.0.0.1:{server.tls_port}{certificates.query}"

    def tried() -> bool:
        cwist_jq.connect(url).close()
        return fake.handshakes > 0

    eventually(tried)
    assert fake.received == b""


# ---- a cluster ----


@pytest.fixture
def cluster(make_tls_server: Callable[..., Any]) -> list[Any]:
    """Two nodes, each with half of the slots, that also encrypt between each other."""
    config = {"cluster-enabled": "yes", "tls-cluster": "yes"}
    nodes = [make_tls_server(config=config) for _ in range(2)]
    clients = [RedisObserver(node.url).client for node in nodes]
    clients[0].execute_command("CLUSTER ADDSLOTSRANGE", 0, 8191)
    clients[1].execute_command("CLUSTER ADDSLOTSRANGE", 8192, 16383)
    clients[0].execute_command("CLUSTER MEET", nodes[1].host, nodes[1].tls_port)
    for client in clients:

        def ready(client: Any = client) -> bool:
            return bool(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")

        eventually(ready)
        client.close()
    return nodes


@pytest.mark.engine("redis")
def test_a_redirect_is_followed_encrypted(
    cluster: list[Any], open_queue: Callable[..., Any]
) -> None:
    """Whatever node has the slot of a queue: the options are those of the URL."""
    for name in ("one", "two", "three", "four"):  # slots of both nodes
        queue = open_queue(cluster[0].tls_url, name)
        queue.enqueue(name.encode())
        job = must_claim(queue)
        assert job.payload == name.encode()
        job.ack()
    for node in cluster:
        keys = RedisObserver(node.url).client
        assert keys.dbsize() > 0
        keys.close()


# ---- a handshake that does not end ----


def test_a_server_that_says_nothing(silent: int, scheme: str) -> None:
    with fails_within(cwist_jq.ConnectionFailed, 1.0, least=0.9) as caught:
        cwist_jq.connect(
            f"{scheme}://127.0.0.1:{silent}", connect_timeout=0.3, operation_timeout=1.0
        )
    assert f"127.0.0.1:{silent}" in str(caught.value)


def test_calls_while_handshakes_stall(
    proxy: Proxy, proxy_url: str, open_queue: Callable[..., Any], queue_name: str
) -> None:
    """They keep their deadlines; the same handle works when the network does."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=1.0, connect_timeout=0.5)
    queue.enqueue(b"before")
    proxy.stall()
    proxy.cut()
    with fails_within(cwist_jq.ConnectionFailed, 1.0, least=0.9):
        queue.dead_count()
    with fails_within(cwist_jq.ConnectionFailed, 0.7, least=0.6):
        queue.claim(0.7)
    proxy.flow()
    proxy.cut()
    assert must_claim(queue).payload == b"before"


def test_a_claim_whose_handshake_stalls_can_be_woken(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
) -> None:
    queue = open_queue(proxy_url, queue_name, connect_timeout=20.0)
    claim = blocked_claim(queue, observer)
    proxy.stall()
    accepted = proxy.accepted
    proxy.cut()
    eventually(lambda: proxy.accepted > accepted)
    queue.interrupt()
    with took(0.0, SLACK), pytest.raises(cwist_jq.Interrupted):
        claim.result()


# ---- a connection that breaks or rests ----


def test_calls_to_a_dead_server_fail_in_time_and_work_afterwards(
    own_server: Any, open_queue: Callable[..., Any], queue_name: str
) -> None:
    queue = open_queue(own_server.url, queue_name, operation_timeout=1.0)
    queue.enqueue(b"held")
    own_server.kill()
    # Over TLS libnats may see the end of the connection only after it has sent.
    with fails_within((cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown), 1.0):
        queue.enqueue(b"lost")
    with fails_within(cwist_jq.ConnectionFailed, 0.7, least=0.65):
        queue.claim(0.7)
    with fails_within(cwist_jq.ConnectionFailed, 1.0, least=0.9):
        queue.dead_count()
    own_server.start()
    queue.enqueue(b"after")
    jobs = [must_claim(queue) for _ in range(2)]
    assert sorted(job.payload for job in jobs) == [b"after", b"held"]
    for job in jobs:
        job.ack()
    assert queue.claim(0.2) is None


def test_no_signal_ends_the_program(
    start: Callable[..., Child], proxy: Proxy, proxy_url: str, queue_name: str
) -> None:
    """F03: the connection breaks while much is sent, and again while goodbyes are."""
    child = start("pipe", proxy_url, queue_name)
    assert child.line() == "ready", child.errors()
    proxy.refuse()
    proxy.cut_after(100_000, UP)
    assert child.line() in ("OutcomeUnknown", "ConnectionFailed")
    assert child.wait() == 0, child.errors()


@pytest.mark.engine("redis")
def test_connections_at_rest_are_used_again(
    proxy: Proxy, proxy_url: str, open_queue: Callable[..., Any], queue_name: str
) -> None:
    """Also when a ticket came meanwhile; and one that the server closed is not."""
    queue = open_queue(proxy_url, queue_name)
    for _ in range(3):
        queue.enqueue(b"x")
    accepted = proxy.accepted
    for _ in range(5):
        time.sleep(0.02)
        queue.dead_count()
    assert proxy.accepted == accepted
    proxy.cut(reset=False)
    queue.dead_count()
    assert proxy.accepted > accepted


def test_a_blocked_claim_sends_little(
    proxy: Proxy,
    proxy_url: str,
    open_queue: Callable[..., Any],
    observer: Any,
    queue_name: str,
) -> None:
    """Encryption adds no traffic of its own."""
    seconds = 3.0
    queue = open_queue(proxy_url, queue_name)
    claim = blocked_claim(queue, observer)
    time.sleep(0.5)
    connections = proxy.accepted
    proxy.forget()
    time.sleep(seconds)
    assert claim.running
    assert proxy.accepted == connections
    assert len(proxy.pieces(UP)) <= 10 * seconds
    queue.enqueue(b"last")
    assert claim.result(2.0).payload == b"last"


@pytest.mark.engine("redis")
def test_the_server_hears_goodbye(
    proxy: Proxy, proxy_url: str, open_queue: Callable[..., Any], queue_name: str
) -> None:
    """A close is told as TLS wants it: an alert of its own, and not just the end of the bytes."""
    queue = open_queue(proxy_url, queue_name)
    queue.enqueue(b"x")
    eventually(lambda: proxy.connections == 1)
    conn = cwist_jq.connect(proxy_url)
    proxy.forget()
    conn.close()
    eventually(lambda: proxy.connections == 1)
    last = proxy.pieces(UP)[-1].data
    assert len(last) < 64  # one short record


# ---- the servers of these tests ----


@pytest.mark.engine("redis")
def test_a_server_whose_port_is_taken_takes_another(
    silent: int, make_tls_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = iter([silent])
    free_port = servers.free_port
    monkeypatch.setattr(servers, "free_port", lambda: next(first, 0) or free_port())
    server = make_tls_server()
    assert server.running
    assert server.tls_port != silent
