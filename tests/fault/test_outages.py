"""The server is down, frozen, restarted or wiped during each kind of call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import (
    SLACK,
    blocked_claim,
    drain,
    fails_within,
    leftovers,
    must_claim,
    took,
)
from tests.waiting import Background, eventually

OPERATION = 1.0


@pytest.fixture
def fragile(own_server: Any, open_queue: Callable[..., Any], queue_name: str) -> Any:
    """A queue on a server that the test may end; its operations have a second."""
    queue = open_queue(
        own_server.url,
        queue_name,
        operation_timeout=OPERATION,
        visibility_timeout=1.0,
        max_retries=100,
    )
    queue.enqueue(b"before")
    job = must_claim(queue)
    assert job.payload == b"before"
    job.ack()
    return queue


@pytest.fixture
def watcher(own_server: Any, engine: str, make_observer: Callable[[str, str], Any]) -> Any:
    """An observer of that server."""
    return make_observer(engine, own_server.url)


@pytest.fixture
def frozen(own_server: Any) -> Iterator[Callable[[], None]]:
    """Freezes the server, all its threads; it is thawed at the end whatever happens."""

    def stopped() -> bool:
        threads = Path(f"/proc/{own_server.pid}/task").iterdir()
        states = [(thread / "stat").read_text().rpartition(") ")[2] for thread in threads]
        return all(state.startswith("T") for state in states)

    def freeze() -> None:
        own_server.pause()
        eventually(stopped)

    yield freeze
    own_server.resume()


# ---- down ----


def test_calls_to_a_dead_server_fail_in_time_and_work_afterwards(
    own_server: Any, fragile: Any, watcher: Any
) -> None:
    """R02, L11, F03, SPEC section 5: IO after the operation timeout, then the same handles work."""
    fragile.enqueue(b"held")
    job = must_claim(fragile)
    own_server.kill()
    # What is sent in the moment before the client learns of the end may have arrived.
    with fails_within((cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown), OPERATION):
        fragile.enqueue(b"lost")
    with fails_within(cwist_jq.ConnectionFailed, OPERATION, least=OPERATION * 0.9) as caught:
        fragile.enqueue(b"lost")
    assert fragile.name in str(caught.value)
    assert str(own_server.port) in str(caught.value)
    with fails_within(cwist_jq.ConnectionFailed, 0.7, least=0.65):
        fragile.claim(0.7)
    with fails_within(cwist_jq.ConnectionFailed, OPERATION):
        fragile.dead_count()
    with fails_within((cwist_jq.ConnectionFailed, cwist_jq.LeaseLost), OPERATION):
        job.ack()
    with fails_within(cwist_jq.ConnectionFailed, OPERATION + 1.0):
        cwist_jq.connect(own_server.url, operation_timeout=OPERATION)
    own_server.start()
    fragile.enqueue(b"after")
    assert sorted(drain(fragile, watcher)) == [b"after", b"held"]
    assert leftovers(watcher, fragile.name) == []


def test_claim_zero_on_a_dead_server(own_server: Any, fragile: Any) -> None:
    """SPEC section 5: no answer is never reported as no job."""
    own_server.kill()
    with fails_within(cwist_jq.ConnectionFailed, 0.3):
        fragile.claim(0)


def test_a_blocked_claim_outlives_a_restart(own_server: Any, fragile: Any, watcher: Any) -> None:
    """R01, R05: the claim that was blocked gets the job that comes after the restart."""
    claim = blocked_claim(fragile, watcher, 30.0)
    own_server.restart(down=0.5)
    fragile.enqueue(b"after")
    assert claim.result(5.0).payload == b"after"


def test_a_claim_that_begins_while_the_server_is_down(own_server: Any, fragile: Any) -> None:
    """R02, R05: it keeps trying until its deadline."""
    fragile.enqueue(b"stored")
    own_server.stop()
    claim = Background(lambda: fragile.claim(20.0))
    time.sleep(1.5)  # the outage
    assert claim.running
    own_server.start()
    assert claim.result(5.0).payload == b"stored"


def test_a_claim_reports_the_outage_at_its_deadline(
    own_server: Any, fragile: Any, watcher: Any
) -> None:
    """SPEC section 5: IO, not a timeout."""
    claim = blocked_claim(fragile, watcher, 1.5)
    own_server.kill()
    with fails_within(cwist_jq.ConnectionFailed, 1.5):
        claim.result()


@pytest.mark.slow
def test_calls_made_during_an_outage_land_when_it_ends(
    own_server: Any, open_queue: Callable[..., Any], queue_name: str, watcher: Any
) -> None:
    """L11 shortened: out for 3 s, ack at second 1, nack at 1.5, enqueue at 2."""
    queue = open_queue(own_server.url, queue_name, visibility_timeout=20.0)
    for payload in (b"acked", b"nacked"):
        queue.enqueue(payload)
    first, second = must_claim(queue), must_claim(queue)
    own_server.stop()
    time.sleep(1.0)
    ack = Background(first.ack)
    time.sleep(0.5)
    nack = Background(second.nack)
    time.sleep(0.5)
    enqueue = Background(lambda: queue.enqueue(b"new"))
    time.sleep(1.0)
    own_server.start()
    for call in (ack, nack):
        call.result(4.0)
    enqueue.result(4.0)
    assert sorted(drain(queue, watcher)) == [b"nacked", b"new"]
    assert leftovers(watcher, queue_name) == []


@pytest.mark.parametrize("end", ["ack", "nack", "release"])
def test_an_end_that_waits_until_its_lease_is_over(
    own_server: Any, open_queue: Callable[..., Any], queue_name: str, watcher: Any, end: str
) -> None:
    """L11, D04: each try looks at the lease again; what was reported is what happened."""
    queue = open_queue(own_server.url, queue_name, visibility_timeout=0.6, max_retries=100)
    queue.enqueue(b"x")
    job = must_claim(queue)
    claimed = time.monotonic()
    own_server.stop()
    call = Background(getattr(job, end))
    time.sleep(max(0.0, claimed + 0.8 - time.monotonic()))  # the lease
    own_server.start()
    lost = False
    try:
        call.result()
    except cwist_jq.LeaseLost:
        lost = True
    # On Redis the server decides, and nobody else has asked for the job yet.
    assert lost or watcher.engine == "redis"
    assert drain(queue, watcher) == ([] if end == "ack" and not lost else [b"x"])
    assert leftovers(watcher, queue_name) == []


def test_a_handler_outlives_a_restart(
    own_server: Any, open_queue: Callable[..., Any], queue_name: str, watcher: Any
) -> None:
    """R02 shortened: the server is restarted while a handler works; the ack lands."""
    queue = open_queue(own_server.url, queue_name, visibility_timeout=20.0)
    queue.enqueue(b"work")
    job = must_claim(queue)
    own_server.restart(down=0.3)
    job.ack()
    assert queue.claim(0.3) is None
    assert leftovers(watcher, queue_name) == []


@pytest.mark.slow
def test_a_worker_outlives_three_restarts(
    own_server: Any, fragile: Any, watcher: Any, make_observer: Callable[..., Any]
) -> None:
    """R01, R05: one handle throughout; then 100 jobs are done."""
    done: list[bytes] = []

    def work() -> None:
        while b"last" not in done:
            try:
                job = fragile.claim(1.0)
            except cwist_jq.ConnectionFailed:
                continue
            if job is not None:
                done.append(job.payload)
                job.ack()

    worker = Background(work)
    for _ in range(3):
        own_server.restart(down=0.2)
        count = len(done)
        fragile.enqueue(b"between")
        eventually(lambda count=count: len(done) > count, 5.0)  # type: ignore[misc]
    for number in range(100):
        fragile.enqueue(b"%d" % number)
    fragile.enqueue(b"last")
    worker.result(20.0)
    assert set(done) == {b"between", b"last", *(b"%d" % number for number in range(100))}
    assert len(done) == 104
    eventually(lambda: not watcher.ready_and_claimed(fragile.name))


# ---- frozen ----


def test_calls_to_a_frozen_server_end_in_time(
    own_server: Any, fragile: Any, watcher: Any, frozen: Callable[[], None]
) -> None:
    """R07, R08, SPEC section 5: sent and not answered is OutcomeUnknown; stale replies are not
    matched to new commands."""
    fragile.enqueue(b"held")
    job = must_claim(fragile)
    frozen()
    with fails_within(cwist_jq.OutcomeUnknown, OPERATION, least=OPERATION * 0.9):
        fragile.enqueue(b"maybe")
    with fails_within(cwist_jq.ConnectionFailed, 0.7, least=0.65):
        fragile.claim(0.7)
    with fails_within((cwist_jq.ConnectionFailed, cwist_jq.Timeout), OPERATION):
        fragile.dead_count()
    with fails_within(
        (cwist_jq.OutcomeUnknown, cwist_jq.ConnectionFailed, cwist_jq.LeaseLost), OPERATION
    ):
        job.ack()
    own_server.resume()
    identity = fragile.enqueue(b"after")
    drained: dict[bytes, list[str]] = {}
    end = time.monotonic() + 20.0
    while watcher.ready_and_claimed(fragile.name) and time.monotonic() < end:
        got = fragile.claim(0.2)
        if got is not None:
            drained.setdefault(got.payload, []).append(got.id)
            got.ack()
    assert drained[b"after"] == [identity]
    assert set(drained) <= {b"after", b"maybe", b"held"}
    assert len(drained.get(b"maybe", [])) <= 1
    assert fragile.dead_count() == 0
    assert leftovers(watcher, fragile.name) == []


@pytest.mark.parametrize("end", ["ack", "nack", "release"])
def test_an_end_that_a_frozen_server_does_later(
    own_server: Any, fragile: Any, watcher: Any, frozen: Callable[[], None], engine: str, end: str
) -> None:
    """D08: the call ends in time, and trying again does not multiply the job."""
    fragile.enqueue(b"one")
    job = must_claim(fragile)
    frozen()
    with fails_within((cwist_jq.OutcomeUnknown, cwist_jq.LeaseLost), OPERATION):
        getattr(job, end)()
    with pytest.raises(cwist_jq.Closed):
        job.nack()
    own_server.resume()
    found = drain(fragile, watcher)
    # A release on NATS is a copy first: both may run.
    least, most = int(end != "ack"), 1 + int((engine, end) == ("nats", "release"))
    assert found in ([b"one"] * count for count in range(least, most + 1))
    assert leftovers(watcher, fragile.name) == []


def test_a_server_that_freezes_during_a_claim(
    own_server: Any, fragile: Any, watcher: Any, frozen: Callable[[], None]
) -> None:
    """R07, R08: the claim ends at its deadline."""
    claim = blocked_claim(fragile, watcher, 2.0)
    start = time.monotonic()
    frozen()
    with contextlib.suppress(cwist_jq.ConnectionFailed):
        assert claim.result(5.0) is None
    assert claim.ended_at - start <= 2.0 + SLACK
    own_server.resume()
    fragile.enqueue(b"after")
    assert must_claim(fragile).payload == b"after"


def test_closing_is_quick_while_the_server_is_frozen(
    own_server: Any,
    open_queue: Callable[..., Any],
    queue_name: str,
    watcher: Any,
    frozen: Callable[[], None],
) -> None:
    """R07, F08: also with a claim blocked in another thread."""
    queue = open_queue(own_server.url, queue_name)
    claim = blocked_claim(queue, watcher, 30.0)
    frozen()
    with took(0.0, 1.0):
        queue.close()
        queue._connection.close()
    with pytest.raises(cwist_jq.Closed):
        claim.result(1.0)


def test_a_blocked_claim_outlives_a_freeze(
    own_server: Any, fragile: Any, watcher: Any, frozen: Callable[[], None]
) -> None:
    """R08: the same call gets the job once the server goes on."""
    claim = blocked_claim(fragile, watcher, 30.0)
    frozen()
    time.sleep(2.5)  # longer than any read of the claim
    own_server.resume()
    fragile.enqueue(b"after")
    assert claim.result(5.0).payload == b"after"


def test_a_half_open_connection(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue_name: str, observer: Any
) -> None:
    """R08: what was sent disappears, and no connection is closed."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=OPERATION)
    claim = blocked_claim(queue, observer, 15.0)
    assert queue.dead_count() == 0  # so that a connection for calls is there
    proxy.stall()
    with fails_within(cwist_jq.OutcomeUnknown, OPERATION, least=OPERATION * 0.9):
        queue.enqueue(b"maybe")
    with fails_within((cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown), OPERATION):
        queue.enqueue(b"again")
    proxy.cut()  # the middle of the network forgets the connections
    proxy.flow()
    for _ in range(3):  # a connection may turn out to be cut only when something was sent on it
        with contextlib.suppress(cwist_jq.OutcomeUnknown):
            queue.enqueue(b"after")
            break
    else:
        pytest.fail("three unknown outcomes in a row")
    got = {claim.result(10.0).payload}
    while b"after" not in got:
        got.add(must_claim(queue).payload)
    assert got <= {b"after", b"maybe", b"again"}
