"""Clocks that are wrong or are set, and names that cannot be resolved for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.fault.support import Child, blocked_claims, leftovers
from tests.waiting import eventually

#: A deadline on a clock that was set back would be waited for an hour.
pytestmark = pytest.mark.timeout(60)

_HOUR = 3600
#: How much later than it may a job may come. On NATS a delayed one has half a second.
_LATE = 0.7

_Start = Callable[..., Child]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [_HOUR, -_HOUR], ids=["ahead", "behind"])
def test_wrong_clocks_change_no_delay_and_no_lease(
    start: _Start,
    shim: dict[str, str],
    url: str,
    queue_name: str,
    observer: Any,
    wrong: int,
) -> None:
    """T03: producer and worker are two hours apart; a second is a second, twice."""
    producer = {**shim, "CWIST_TEST_CLOCK": str(wrong)}
    worker = {**shim, "CWIST_TEST_CLOCK": str(-wrong)}
    claims = start("wrong_clock", url, queue_name, "claim", env=worker)
    assert abs(int(claims.line()) - (time.time() - wrong)) < 60
    eventually(lambda: blocked_claims(observer, queue_name) > 0)
    enqueues = start("wrong_clock", url, queue_name, "enqueue", env=producer)
    assert abs(int(enqueues.line()) - (time.time() + wrong)) < 60
    enqueued = float(enqueues.line())
    first, attempts = claims.line().split()
    assert attempts == "1"
    assert 0.9 <= float(first) - enqueued <= 1.0 + _LATE
    second, attempts = claims.line().split()
    assert attempts == "2"
    assert 0.9 <= float(second) - float(first) <= 1.0 + _LATE
    assert claims.wait() == 0, claims.errors()
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", [_HOUR, -_HOUR], ids=["forward", "back"])
def test_a_clock_that_is_set_moves_no_deadline_and_loses_no_lease(
    start: _Start, shim: dict[str, str], url: str, queue_name: str, observer: Any, step: int
) -> None:
    """T04: in the middle of a claim and between renewals."""
    child = start("set_clock", url, queue_name, step, env=shim)
    assert 0.95 <= float(child.line()) <= 1.5
    assert abs(int(child.line()) - step) < 60, "the clock was not set"
    assert child.line() == "False True"
    assert child.wait() == 0, child.errors()
    assert leftovers(observer, queue_name) == []


@pytest.mark.slow
def test_names_that_are_lost_for_a_while_cost_nothing(
    start: _Start, shim: dict[str, str], engine: str, proxy: Any, queue_name: str
) -> None:
    """R18: 32 threads on one queue; all work again, on as many descriptors as before."""
    child = start("lost_names", f"{engine}://queue.test:{proxy.port}", queue_name, env=shim)
    assert child.line() == "working"
    child.go_on()
    assert child.line() == "lost"
    proxy.cut()
    time.sleep(3.0)  # the outage
    child.go_on()
    lookups, failed, named = child.line().split()
    assert int(failed) > 0
    assert named == "True" or engine == "nats"
    # Not in a hurry either: 32 threads for three seconds.
    assert 0 < int(lookups) < 32 * 3 * 30
    assert child.line() == "all work again"
    before, after = map(int, child.line().split())
    assert after <= before + 4
    assert child.wait() == 0, child.errors()
