"""Claims last as long as they were told, whatever the machine does."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fault.support import blocked_claim, took

pytestmark = pytest.mark.quiet

_BURN = "while True: pass"


@pytest.fixture
def load() -> Iterator[None]:
    """Keeps every core busy."""
    burners = [subprocess.Popen([sys.executable, "-S", "-E", "-c", _BURN]) for _ in range(4)]
    yield
    for burner in burners:
        burner.kill()
        burner.wait()


@pytest.mark.servers("all")
def test_each_claim_lasts_its_timeout(make_queue: Callable[..., Any]) -> None:
    """R06: the first claim does not make the next ones return at once."""
    queue = make_queue()
    used = time.process_time()
    for _ in range(5):
        with took(0.5, 0.6):
            assert queue.claim(0.5) is None
    assert time.process_time() - used < 0.5


@pytest.mark.servers("all")
def test_claim_zero_returns_at_once(make_queue: Callable[..., Any]) -> None:
    """R06."""
    queue = make_queue()
    assert queue.claim(0) is None
    for _ in range(20):
        with took(0.0, 0.25):
            assert queue.claim(0) is None
    queue.enqueue(b"here")
    job = queue.claim(0)
    assert job is not None
    job.ack()


def test_claims_keep_their_deadline_under_load(make_queue: Callable[..., Any], load: None) -> None:
    """T04: eight claims at once while other programs use every core."""
    queue = make_queue()

    def claim(number: int) -> None:
        timeout = 0.3 + 0.1 * number
        with took(timeout, timeout + 0.5):
            assert queue.claim(timeout) is None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(claim, range(8)))


@pytest.mark.engine("redis")
def test_an_idle_claim_outlives_the_operation_timeout(
    url: str, open_queue: Callable[..., Any], queue_name: str, observer: Any
) -> None:
    """R11: one connection throughout, no error, None at the end."""
    queue = open_queue(url, queue_name, operation_timeout=0.5)
    claim = blocked_claim(queue, observer, 3.0)
    first = {client["id"] for client in observer.client.client_list()}
    assert claim.result(5.0) is None
    last = {client["id"] for client in observer.client.client_list()}
    assert first <= last
    assert last <= first | {max(last)}


@pytest.mark.engine("nats")
def test_an_idle_claim_outlives_the_operation_timeout_on_nats(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue_name: str, observer: Any
) -> None:
    """R11, R06: one connection throughout, no error, None at the end."""
    queue = open_queue(proxy_url, queue_name, operation_timeout=0.5)
    claim = blocked_claim(queue, observer, 3.0)
    accepted = proxy.accepted
    assert claim.result(5.0) is None
    assert proxy.accepted == accepted
