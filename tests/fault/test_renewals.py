"""Leases that the library keeps while servers, connections and handlers misbehave.

CASES D02: a handler that takes longer than its lease runs once.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import must_claim
from tests.proxy import DOWN, Proxy
from tests.waiting import eventually

#: What an extension is on the wire.
_EXTENSION = {"redis": b"XCLAIM", "nats": b"+WPI"}


@pytest.fixture
def far(
    open_queue: Callable[..., Any], proxy_url: str, queue_name: str
) -> Callable[[float], cwist_jq.Queue]:
    """Opens a queue behind the proxy that keeps the leases of what it claims: far(visibility)."""

    def make(visibility: float) -> Any:
        return open_queue(
            proxy_url,
            queue_name,
            visibility_timeout=visibility,
            operation_timeout=2.0,
            auto_renew=True,
        )

    return make


@pytest.fixture
def near(make_queue: Callable[..., Any], queue_name: str) -> Any:
    """Another queue on the same server by a way of its own, with short leases."""
    return make_queue(f"{queue_name}-near", visibility_timeout=0.6, auto_renew=True)


def claimed(queue: Any) -> Any:
    """A job of that queue that is being worked on."""
    queue.enqueue(b"work")
    return must_claim(queue)


def finish(queue: Any, job: Any) -> None:
    """Acks the job, which nobody else had."""
    assert not job.lease_lost
    job.ack()
    assert queue.claim(0.7) is None
    assert queue.dead_count() == 0


def test_one_lost_reply_costs_no_lease(far: Any, proxy: Proxy, engine: str) -> None:
    """The server extended the lease and the connection broke: the next try finds the job ours."""
    queue = far(1.0)
    job = claimed(queue)
    proxy.lose_reply_to(_EXTENSION[engine])
    before = proxy.accepted
    eventually(lambda: proxy.accepted > before)
    time.sleep(2.5)  # more than two leases
    finish(queue, job)


def test_a_dead_server_costs_no_lease_at_another(
    far: Any, near: Any, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread waits for one server; the short leases at the other one hold all the same."""
    lost = claimed(far(1.5))
    kept = claimed(near)
    proxy.stall()
    with caplog.at_level(logging.WARNING, "cwist_jq"):
        eventually(lambda: lost.lease_lost)
        time.sleep(1.0)
        finish(near, kept)  # a call of the library brings the log
    assert "could not be renewed" in caplog.text
    proxy.flow()
    with contextlib.suppress(cwist_jq.LeaseLost):  # on Redis nobody has taken it yet
        lost.ack()


def test_a_slow_server_keeps_its_leases_and_those_of_others(
    far: Any, near: Any, proxy: Proxy
) -> None:
    """Each answer takes longer than the thread waits: that connection has a thread of its own."""
    queue = far(3.0)
    slow = claimed(queue)
    kept = claimed(near)
    proxy.delay(0.2, DOWN)
    time.sleep(6.5)  # more than two leases
    finish(near, kept)
    proxy.flow()
    finish(queue, slow)


def test_a_handler_that_holds_the_interpreter_lock_runs_once(
    make_queue: Callable[..., Any],
) -> None:
    """The thread that renews leases is C's own and needs no interpreter."""
    queue = make_queue(visibility_timeout=0.5, auto_renew=True)
    job = claimed(queue)
    assert ctypes.PyDLL(None).usleep(2_500_000) == 0  # unlike CDLL, it keeps the lock
    finish(queue, job)
