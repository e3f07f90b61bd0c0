"""A Redis server that is full, loading, a replica, out of disk, or throws clients out."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import (
    blocked_claim,
    blocked_claims,
    drain,
    fails_within,
    leftovers,
    must_claim,
)
from tests.observers import RedisObserver
from tests.proxy import Proxy
from tests.waiting import Background, eventually

pytestmark = [pytest.mark.engine("redis"), pytest.mark.servers("all")]

OPERATION = 1.0


@pytest.fixture
def watcher(own_server: Any, make_observer: Callable[[str, str], Any]) -> Any:
    """An observer of a server of the test's own."""
    return make_observer("redis", own_server.url)


@pytest.fixture
def queue_on(open_queue: Callable[..., Any], queue_name: str) -> Callable[..., Any]:
    """Opens the test's queue on a server, with a second for each operation."""

    def make(url: str, **options: Any) -> Any:
        return open_queue(url, queue_name, operation_timeout=OPERATION, **options)

    return make


@pytest.fixture
def replicated(own_server: Any, watcher: Any) -> Iterator[Callable[[], None]]:
    """Makes the server a replica of nobody, and a master again at the end."""
    yield lambda: watcher.client.replicaof("127.0.0.1", 1)
    watcher.client.replicaof("NO", "ONE")


# ---- fail-over ----


def test_a_blocked_claim_outlives_a_role_change(
    own_server: Any, watcher: Any, queue_on: Callable[..., Any], replicated: Callable[[], None]
) -> None:
    """R03: UNBLOCKED is no reason to end; the same call gets the job."""
    queue = queue_on(own_server.url)
    claim = blocked_claim(queue, watcher)
    replicated()
    time.sleep(0.3)
    assert claim.running
    watcher.client.replicaof("NO", "ONE")
    queue.enqueue(b"after")
    assert claim.result(5.0).payload == b"after"


def test_a_replica_refuses_by_name(
    own_server: Any, watcher: Any, queue_on: Callable[..., Any], replicated: Callable[[], None]
) -> None:
    """R04: READONLY is tried until the deadline, then named; afterwards everything works."""
    queue = queue_on(own_server.url)
    queue.enqueue(b"before")
    replicated()
    with fails_within(cwist_jq.Refused, OPERATION, least=OPERATION * 0.9) as caught:
        queue.enqueue(b"no")
    assert "READONLY" in str(caught.value)
    with fails_within((cwist_jq.Refused, cwist_jq.ConnectionFailed), 0.7, least=0.65):
        queue.claim(0.7)
    watcher.client.replicaof("NO", "ONE")
    assert drain(queue, watcher) == [b"before"]


def test_roles_are_swapped_behind_one_name(
    own_server: Any,
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    queue_on: Callable[..., Any],
) -> None:
    """R04: READONLY closes the connection, so the next one reaches the new master."""
    other = make_server()
    old, new = make_observer("redis", own_server.url), make_observer("redis", other.url)
    with Proxy(own_server.host, own_server.port) as proxy:
        queue = queue_on(proxy.url("redis"))
        queue.enqueue(b"one")
        new.client.replicaof(own_server.host, own_server.port)
        eventually(lambda: new.client.info("replication")["master_link_status"] == "up")
        claimed = must_claim(queue)
        claimed.ack()
        claim = blocked_claim(queue, old)
        eventually(lambda: new.ready_and_claimed(queue.name) == 0)
        new.client.replicaof("NO", "ONE")
        proxy.lead_to(other.host, other.port)
        old.client.replicaof(other.host, other.port)
        queue.enqueue(b"two")
        job = claim.result(5.0)
        assert job.payload == b"two"
        job.ack()
        assert leftovers(new, queue.name) == []


# ---- loading ----


def test_a_server_that_is_loading(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    open_queue: Callable[..., Any],
    queue_name: str,
) -> None:
    """S01: LOADING is waited out within the deadline; when it lasts, it is named."""
    server = make_server(appendonly="always")
    client = make_observer("redis", server.url).client
    with client.pipeline(transaction=False) as many:
        for number in range(20_000):
            many.set(f"filler:{number}", b"x")
        many.execute()
    queue = open_queue(server.url, queue_name, operation_timeout=0.7)
    queue.enqueue(b"before")
    server.kill()
    server._settings["key-load-delay"] = 50  # microseconds for each command of the file
    server._answers = lambda: server._exchange(b"PING\r\n").startswith(b"-LOADING")
    server.start()
    # Whether the last try was answered before the deadline is chance on so slow a server.
    with fails_within((cwist_jq.Refused, cwist_jq.OutcomeUnknown), 0.7, least=0.6):
        queue.enqueue(b"no")
    patient = open_queue(server.url, queue_name, operation_timeout=20.0)
    patient.enqueue(b"after")
    assert {b"before", b"after"} <= set(drain(queue, make_observer("redis", server.url)))


def _answer_loading(listener: socket.socket) -> None:
    """A server that answers every command with LOADING."""
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        with conn, contextlib.suppress(OSError):
            while data := conn.recv(65536):
                # A command begins with the count of its words.
                commands = len(re.findall(rb"(?:^|\r\n)\*\d+\r\n", data))
                conn.sendall(b"-LOADING Redis is loading the dataset in memory\r\n" * commands)


def test_loading_is_named_and_waited_out(
    own_server: Any, watcher: Any, queue_on: Callable[..., Any]
) -> None:
    """S01: the error says what the server said; within the deadline the call succeeds."""
    with (
        Proxy(own_server.host, own_server.port) as proxy,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        threading.Thread(target=_answer_loading, args=(listener,), daemon=True).start()
        queue = queue_on(proxy.url("redis"))
        proxy.lead_to("127.0.0.1", listener.getsockname()[1])
        proxy.cut()
        with fails_within(cwist_jq.Refused, OPERATION, least=OPERATION * 0.9) as caught:
            queue.enqueue(b"no")
        assert "LOADING" in str(caught.value)
        with fails_within((cwist_jq.Refused, cwist_jq.ConnectionFailed), 0.7, least=0.65) as caught:
            queue.claim(0.7)
        assert "LOADING" in str(caught.value)
        enqueue = Background(lambda: queue.enqueue(b"after"))
        time.sleep(0.3)
        assert enqueue.running
        proxy.lead_to(own_server.host, own_server.port)
        enqueue.result(OPERATION)
        assert drain(queue, watcher) == [b"after"]
        listener.shutdown(socket.SHUT_RDWR)


# ---- full ----


def test_a_full_server(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    queue_on: Callable[..., Any],
) -> None:
    """S03: enqueue is refused with the server's words; ack, nack, claim and death go on."""
    server = make_server()
    watcher = make_observer("redis", server.url)
    queue = queue_on(server.url, max_retries=3)
    deadly = queue_on(server.url, max_retries=1)
    for number in range(20):
        queue.enqueue(b"%d" % number + b"x" * 10_000)
    must_claim(queue).ack()
    first = must_claim(queue)
    full = {"maxmemory": "1mb", "maxmemory-policy": "noeviction"}
    for name, value in full.items():
        watcher.client.config_set(name, value)
    with fails_within(cwist_jq.Refused, OPERATION) as caught:
        queue.enqueue(b"no")
    assert "OOM" in str(caught.value)
    assert "maxmemory" in str(caught.value)
    first.ack()
    must_claim(queue).nack(reason="while full")
    must_claim(queue).release()
    must_claim(queue).extend()
    dead = must_claim(deadly)
    dead.nack(reason="dead while full")
    assert [letter.payload for letter in watcher.dead(queue.name)] == [dead.payload]
    for _ in range(10):
        must_claim(queue).ack()
    watcher.client.config_set("maxmemory", 0)
    queue.enqueue(b"again")
    rest = drain(queue_on(server.url, visibility_timeout=0.2), watcher)
    # 20 less two acked, one dead and ten acked, and the new one; the extended one comes back.
    assert len(rest) == 20 - 2 - 1 - 10 + 1
    assert len(set(rest)) == len(rest)
    assert leftovers(watcher, queue.name, dead=1) == []


# ---- disk ----


def test_a_server_that_cannot_save(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    queue_on: Callable[..., Any],
) -> None:
    """S02: MISCONF comes with the server's words; nothing is lost; it goes on after the repair."""
    server = make_server()
    watcher = make_observer("redis", server.url)
    watcher.client.config_set("save", "3600 1")
    queue = queue_on(server.url)
    for payload in (b"one", b"two"):
        queue.enqueue(payload)
    held = must_claim(queue)
    folder = server.folder / "dump.rdb"
    folder.mkdir()  # a folder where the file should go: saving fails
    (folder / "x").touch()
    watcher.client.bgsave()
    eventually(lambda: watcher.client.info("persistence")["rdb_last_bgsave_status"] == "err")
    with fails_within(cwist_jq.Refused, OPERATION) as caught:
        queue.enqueue(b"no")
    assert "MISCONF" in str(caught.value)
    with fails_within((cwist_jq.Refused, cwist_jq.ConnectionFailed), 0.5) as caught:
        queue.claim(0.5)
    assert "MISCONF" in str(caught.value)
    with fails_within(cwist_jq.Refused, OPERATION):
        held.ack()
    claim = Background(lambda: queue_on(server.url, visibility_timeout=0.3).claim(20.0))
    (folder / "x").unlink()
    folder.rmdir()
    watcher.client.config_set("stop-writes-on-bgsave-error", "no")
    claim.result(5.0).ack()
    drain(queue_on(server.url, visibility_timeout=0.3), watcher)
    assert leftovers(watcher, queue.name) == []


# ---- clients thrown out ----


@pytest.mark.slow
def test_clients_are_killed_all_the_time(
    own_server: Any, watcher: Any, queue_on: Callable[..., Any]
) -> None:
    """R01: CLIENT KILL every 100 ms for 3 s during a worker's loop; then 100 jobs are done."""
    queue = queue_on(own_server.url, visibility_timeout=1.0, max_retries=100)
    done: list[bytes] = []

    def work() -> None:
        while b"last" not in done:
            job = queue.claim(5.0)
            if job is None:
                continue
            try:
                job.ack()
            except (cwist_jq.LeaseLost, cwist_jq.OutcomeUnknown):
                continue
            finally:
                done.append(job.payload)

    worker = Background(work)
    end = time.monotonic() + 3.0
    stored, unknown = 0, 0
    while time.monotonic() < end:
        watcher.client.client_kill_filter(_type="normal", skipme=True)
        for _ in range(5):
            try:
                queue.enqueue(b"storm %d" % stored)
                stored += 1
            except cwist_jq.OutcomeUnknown:
                unknown += 1
        time.sleep(0.1)
    for number in range(100):
        queue.enqueue(b"%d" % number)
    queue.enqueue(b"last")
    worker.result(20.0)
    drain(queue, watcher)
    wanted = {b"storm %d" % number for number in range(stored)}
    wanted |= {b"%d" % number for number in range(100)}
    assert wanted <= set(done)
    assert leftovers(watcher, queue.name) == []


def test_no_more_clients_are_allowed(
    own_server: Any, watcher: Any, queue_on: Callable[..., Any]
) -> None:
    """R14: "max clients" is a failed attempt like any other, and backed off from."""
    queue = queue_on(own_server.url)
    queue.enqueue(b"before")
    watcher.client.config_set("maxclients", 1)
    watcher.client.client_kill_filter(_type="normal", skipme=True)
    seen = watcher.client.info("stats")["rejected_connections"]
    with fails_within((cwist_jq.ConnectionFailed, cwist_jq.Refused), OPERATION):
        queue.enqueue(b"no")
    tries = watcher.client.info("stats")["rejected_connections"] - seen
    assert 1 <= tries <= 30
    watcher.client.config_set("maxclients", 1000)
    assert drain(queue, watcher) == [b"before"]


# ---- ghosts and permanent errors ----


def test_a_command_that_is_denied_for_good_does_not_spin(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    queue_on: Callable[..., Any],
) -> None:
    """R13: an error that stays is reported, without hundreds of commands a second."""
    acl = "user default on nopass ~* &* +@all\nuser w on >pw ~* &* +@all -xgroup\n"
    server = make_server(acl=acl, user="w", password="pw")
    admin: Any = RedisObserver(f"redis://{server.host}:{server.port}")
    queue = queue_on(server.url)
    queue.enqueue(b"x")
    before = admin.client.info("stats")["total_commands_processed"]
    used = time.process_time()
    with fails_within(cwist_jq.Denied, 2.0) as caught:
        queue.claim(2.0)
    assert "xgroup" in str(caught.value).lower()
    assert admin.client.info("stats")["total_commands_processed"] - before < 100
    assert time.process_time() - used < 0.5
    # What was denied is not taken for done: with the right given back, it works.
    admin.client.acl_setuser("w", commands=["+xgroup"])
    must_claim(queue).ack()
    assert blocked_claims(admin, queue.name) == 0
    admin.close()
