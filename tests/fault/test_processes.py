"""Forks, signals, the end of the interpreter, and processes that die with a job or a claim."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.fault.support import Child, blocked_claims, drain, leftovers, must_claim
from tests.waiting import eventually

_Start = Callable[..., Child]


@pytest.mark.servers("all")
def test_fork(start: _Start, url: str, queue: Any, observer: Any) -> None:
    """F01: the child is told at once; its own connection works; the parent is not touched."""
    queue.enqueue(b"x")
    child = start("fork", url, queue.name)
    assert child.line() == "inherited 0", child.errors()
    own = child.line()
    assert own == "own 0", child.errors()
    assert child.line() == "parent from the parent"
    assert child.wait() == 0
    assert leftovers(observer, queue.name) == []


@pytest.mark.servers("all")
def test_sockets_are_not_inherited(start: _Start, engine: str, proxy: Any, proxy_url: str) -> None:
    """F02: when the library closes a connection, the server sees it end."""
    child = start("inherit", proxy_url, "inherit")
    assert child.line() == "closed"
    assert proxy.accepted > 0
    eventually(lambda: proxy.connections == 0, 2.0)


@pytest.mark.parametrize("way", ["tcp", "unix"])
def test_a_server_that_goes_away_ends_no_program(
    start: _Start, make_server: Callable[..., Any], engine: str, queue_name: str, way: str
) -> None:
    """F03: with the signals as a C program has them, idle connections and calls in turn."""
    if way == "unix" and engine == "redis":
        server = make_server(unix_socket=True)
        url = f"unix://{server.socket_path}"
    else:
        server = make_server()
        url = server.url
    child = start("outlive", url, queue_name)
    assert child.line() == "stored"
    server.kill()
    child.go_on()
    for _ in range(3):
        assert child.line() in ("ConnectionFailed", "OutcomeUnknown")
    assert child.wait() == 0, child.errors()


@pytest.mark.slow
@pytest.mark.servers("all")
def test_a_storm_of_signals(start: _Start, url: str, queue_name: str) -> None:
    """F04: no failure, and the deadline is kept."""
    child = start("storm", url, queue_name)
    waited = float(child.line())
    assert 1.0 <= waited <= 1.3, child.errors()
    assert int(child.line()) > 20
    assert child.wait() == 0


@pytest.mark.servers("all")
def test_ctrl_c_ends_a_claim(start: _Start, url: str, queue: Any, observer: Any) -> None:
    """F05: within half a second, and nothing is lost."""
    child = start("interrupted", url, queue.name)
    assert child.line() == "waiting"
    eventually(lambda: blocked_claims(observer, queue.name) > 0)
    sent = time.monotonic()
    os.kill(child.pid, signal.SIGINT)
    assert float(child.line()) - sent < 0.5
    assert child.wait(2.0) != 0
    assert "KeyboardInterrupt" in child.errors()
    queue.enqueue(b"after")
    assert must_claim(queue, 1.0).attempts == 1


@pytest.mark.slow
@pytest.mark.parametrize("delay", [-0.1, -0.03, -0.005, 0.0, 0.0005, 0.002])
def test_ctrl_c_in_the_same_instant_as_a_job(
    start: _Start, url: str, make_queue: Callable[..., Any], observer: Any, delay: float
) -> None:
    """F05, rule 14: the job is there for others at once, and has spent no attempt.

    A signal that came first is noticed only when the library returns, and then with the job.
    """
    queue = make_queue(visibility_timeout=30.0)
    child = start("interrupted", url, queue.name)
    assert child.line() == "waiting"
    eventually(lambda: blocked_claims(observer, queue.name) > 0)
    if delay < 0:
        os.kill(child.pid, signal.SIGINT)
        time.sleep(-delay)
    queue.enqueue(b"same instant")
    if delay >= 0:
        time.sleep(delay)
        os.kill(child.pid, signal.SIGINT)
    if child.line() == "no interrupt":
        # The claim had returned: the program had its job, and ended without settling it.
        assert delay >= 0
        assert observer.ready_and_claimed(queue.name) == 1
        return
    job = must_claim(queue, 1.0)
    assert (job.payload, job.attempts) == (b"same instant", 1)
    job.ack()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [("exit", 3), ("raise", 1), ("return", 0)])
def test_the_end_of_the_interpreter(
    start: _Start, url: str, make_queue: Callable[..., Any], how: str, code: int
) -> None:
    """F07: right exit code, no crash, under 2 s, ten times."""
    queue = make_queue(visibility_timeout=0.2, max_retries=1000)
    for turn in range(10):
        queue.enqueue(b"%d" % turn)
        child = start("leave", how, url, queue.name)
        assert child.line() == str(turn)
        left = float(child.line())
        assert child.wait(5.0) == code, child.errors()
        assert time.monotonic() - left < 2.0
        errors = child.errors()
        assert ("unhandled" in errors) == (how == "raise"), errors
        assert "Fatal" not in errors
        assert "Segmentation" not in errors
        job = must_claim(queue, 5.0)
        assert (job.payload, job.attempts) == (b"%d" % turn, 2)
        job.ack()


@pytest.mark.servers("all")
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_claim_left_behind_catches_no_job(
    start: _Start, url: str, make_queue: Callable[..., Any], observer: Any, how: str
) -> None:
    """R10: the other one has the job in a second, or, when the first is frozen, after its lease."""
    visibility = 1.0
    queue = make_queue(visibility_timeout=visibility)
    child = start("wait", url, queue.name, 60)
    assert child.line() == "waiting"
    eventually(lambda: blocked_claims(observer, queue.name) > 0)
    os.kill(child.pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
    if how == "kill":
        child.wait()
    sent = time.monotonic()
    queue.enqueue(b"x")
    job = must_claim(queue, 10.0)
    assert time.monotonic() - sent < (1.0 if how == "kill" else visibility + 1.0)
    job.ack()


@pytest.mark.servers("all")
def test_a_closed_claim_catches_no_job(make_queue: Callable[..., Any], observer: Any) -> None:
    """R10: a claim that another thread closed."""
    import cwist_jq
    from tests.fault.support import blocked_claim

    first, second = make_queue(), make_queue()
    claim = blocked_claim(first, observer, 60.0)
    first.close()
    with pytest.raises(cwist_jq.Closed):
        claim.result(1.0)
    second.enqueue(b"x")
    job = must_claim(second, 1.0)
    assert job.attempts == 1
    job.ack()


@pytest.mark.servers("all")
def test_a_killed_holder_gives_its_job_back(
    start: _Start, url: str, make_queue: Callable[..., Any], observer: Any
) -> None:
    """L01, L03, L04: at the end of its lease, to a claim that was blocked before."""
    from tests.fault.support import blocked_claim

    queue = make_queue(visibility_timeout=1.0)
    queue.enqueue(b"x")
    child = start("hold", url, queue.name, 1.0)
    assert child.line() == "x"
    held = time.monotonic()
    claim = blocked_claim(queue, observer)
    child.kill()
    job = claim.result(5.0)
    assert time.monotonic() - held < 1.25
    assert job.attempts == 2
    job.ack()


@pytest.mark.slow
def test_a_crash_loop_has_the_pace_of_the_leases(
    start: _Start, url: str, make_queue: Callable[..., Any], observer: Any
) -> None:
    """X01, X07: under a supervisor that waits for nothing. The retry delay is for nacks alone."""
    visibility = 0.8
    queue = make_queue(visibility_timeout=visibility, max_retries=3)
    queue.enqueue(b"poison")
    moments = []
    for attempt in (1, 2, 3):
        child = start("crash", url, queue.name, visibility)
        said, moment = child.line().split()
        assert int(said) == attempt
        moments.append(float(moment))
        assert child.wait() == -signal.SIGKILL
    for earlier, later in itertools.pairwise(moments):
        assert visibility - 0.05 <= later - earlier <= visibility + 1.0
    assert queue.claim(visibility + 0.5) is None
    assert queue.dead_count() == 1
    assert leftovers(observer, queue.name, dead=1) == []


@pytest.mark.slow
@pytest.mark.engine("redis")
def test_workers_killed_at_any_moment_leave_nothing_that_locks(
    start: _Start, url: str, make_queue: Callable[..., Any], observer: Any
) -> None:
    """L01, L02: also in the middle of a recovery; no key is left, and anyone goes on at once."""
    visibility = 0.2
    queue = make_queue(visibility_timeout=visibility, max_retries=1000)
    total = 0
    for _ in range(10):
        children = [start("claims", url, queue.name, visibility) for _ in range(3)]
        for child in children:
            assert child.line() == "working"
        queue.enqueue_many(b"%d" % number for number in range(total, total + 100))
        total += 100
        for child in children:
            time.sleep(random.uniform(0.0, 0.15))
            child.kill()
        assert set(observer.keys(queue.name)) <= {"s", "conf"}
    drain(queue, observer)
    assert leftovers(observer, queue.name) == []


@pytest.mark.slow
def test_more_unacked_jobs_than_any_default_limit(
    make_queue: Callable[..., Any], observer: Any
) -> None:
    """R09: 1,100 held by a few handles; one more reaches another."""
    holders = [make_queue(visibility_timeout=60.0) for _ in range(3)]
    held = []
    for number in range(1100):
        holders[number % 3].enqueue(b"%d" % number)
        held.append(must_claim(holders[number % 3]))
    other = make_queue(visibility_timeout=60.0)
    other.enqueue(b"one more")
    job = must_claim(other, 2.0)
    assert job.payload == b"one more"
    for one in (*held, job):
        one.ack()
    assert leftovers(observer, other.name) == []
