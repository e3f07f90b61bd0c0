"""A server that is far away, and a connection that is slow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import blocked_claim, must_claim, took
from tests.waiting import eventually

pytestmark = pytest.mark.quiet


@pytest.mark.parametrize("one_way", [0.1, 0.2], ids=["200ms", "400ms"])
def test_a_far_server_serves_claims(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue_name: str, one_way: float
) -> None:
    """No job is an answer and no error, and no delivery is lost on the way."""
    proxy.delay(one_way)
    queue = open_queue(proxy_url, queue_name, operation_timeout=20.0)
    for timeout in (0.0, 0.1, 1.0):
        with took(0.0, timeout + 4.5):
            assert queue.claim(timeout) is None
    for timeout in (0.0, 0.1, 1.0):
        queue.enqueue(b"far")
        job = queue.claim(timeout)
        assert job is not None
        assert job.attempts == 1
        job.ack()


def _interrupt_as_a_job_comes(claim: Any, queue: Any, other: Any, observer: Any) -> None:
    """The server has given the job, and the claim that ends has not seen it yet."""
    other.enqueue(b"on its way")
    eventually(lambda: observer.claimed(other.name) == 1, pause=0.001)
    with took(0.0, 3.0):
        queue.interrupt()
        with pytest.raises(cwist_jq.Interrupted):
            claim.result()
    job = must_claim(other, 1.0)
    assert (job.payload, job.attempts) == (b"on its way", 1)
    job.ack()


def test_a_job_on_its_way_to_an_interrupted_claim_is_released(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue: Any, observer: Any
) -> None:
    """F05, rule 14. The claim has slices that are shorter than the way to the server and back."""
    proxy.delay(0.2)
    distant = open_queue(proxy_url, queue.name)
    claim = blocked_claim(distant, observer)
    _interrupt_as_a_job_comes(claim, distant, queue, observer)


@pytest.mark.engine("redis")
def test_a_job_on_its_way_from_a_server_that_became_slow_is_released(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue: Any, observer: Any
) -> None:
    """F05, rule 14. On NATS nothing can call a pull back: there the job may spend an attempt."""
    distant = open_queue(proxy_url, queue.name)
    claim = blocked_claim(distant, observer)
    proxy.delay(0.3, "down")
    _interrupt_as_a_job_comes(claim, distant, queue, observer)


@pytest.mark.engine("redis")
@pytest.mark.parametrize("timeout", [0.0, 1.0])
def test_a_large_job_on_a_slow_connection_arrives(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue_name: str, timeout: float
) -> None:
    """A reply that has begun is waited for: it holds a job that is already claimed."""
    queue = open_queue(proxy_url, queue_name)
    queue.enqueue(bytes(20_000_000))
    proxy.delay(0.01, "down")  # for each 64 KiB at most
    job = queue.claim(timeout)
    assert job is not None
    assert (len(job.payload), job.attempts) == (20_000_000, 1)
    job.ack()


@pytest.mark.engine("redis")
def test_a_reply_that_stops_half_way_is_given_up(
    proxy: Any, proxy_url: str, open_queue: Callable[..., Any], queue_name: str
) -> None:
    """The claim ends, and the job comes back."""
    queue = open_queue(proxy_url, queue_name, visibility_timeout=2.0)
    queue.enqueue(bytes(1_000_000))
    assert queue.dead_count() == 0
    proxy.delay(0.1, "down")
    stops = threading.Timer(0.5, proxy.stall, ["down"])
    goes_on = threading.Timer(3.0, proxy.flow)
    stops.start()
    goes_on.start()
    job = queue.claim(10.0)
    assert job is not None
    assert job.attempts == 2
    job.ack()
