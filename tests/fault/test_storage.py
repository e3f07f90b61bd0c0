"""What a server keeps when it is killed, and what is said of one that keeps less."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import blocked_claim, drain, leftovers, must_claim

JOBS = 50


def test_a_killed_server_keeps_what_it_was_given(
    own_server: Any,
    open_queue: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    engine: str,
    queue_name: str,
) -> None:
    """L14: ready, claimed, delayed and dead jobs; killed in the moment after the last success."""
    queue = open_queue(own_server.url, queue_name, visibility_timeout=1.0)
    queue.enqueue(b"dead")
    must_claim(queue).nack(dead=True)
    queue.enqueue(b"claimed")
    must_claim(queue)
    queue.enqueue(b"delayed", delay=0.5)
    for number in range(JOBS):
        queue.enqueue(b"%d" % number)
    own_server.restart(crash=True)
    observer = make_observer(engine, own_server.url)
    found = drain(queue, observer)
    assert sorted(found) == sorted([b"claimed", b"delayed", *(b"%d" % n for n in range(JOBS))])
    assert [letter.payload for letter in observer.dead(queue_name)] == [b"dead"]
    assert leftovers(observer, queue_name, dead=1) == []


@pytest.mark.engine("redis")
@pytest.mark.servers("all")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, True),
        ({"appendonly": "yes"}, False),
        ({"save": "3600 1"}, False),
    ],
    ids=["nothing", "aof", "snapshots"],
)
def test_a_server_that_stores_nothing_is_named(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    caplog: pytest.LogCaptureFixture,
    options: dict[str, str],
    *,
    told: bool,
) -> None:
    """L14: when it is connected to, once, with its address."""
    server = make_server()
    for name, value in options.items():
        make_observer("redis", server.url).client.config_set(name, value)
    with caplog.at_level(logging.WARNING, "cwist_jq"), cwist_jq.connect(server.url):
        pass
    words = [record.getMessage() for record in caplog.records]
    assert len(words) == int(told), words
    for word in words:
        assert "neither appendonly nor save is set" in word
        assert str(server.port) in word


@pytest.mark.engine("redis")
@pytest.mark.servers("all")
@pytest.mark.parametrize("policy", ["allkeys-lru", "noeviction"])
def test_a_server_that_evicts_is_named(
    make_server: Callable[..., Any], caplog: pytest.LogCaptureFixture, policy: str
) -> None:
    """S04: when it is connected to; with the word for what is right."""
    config = {"maxmemory": "100mb", "maxmemory-policy": policy}
    server = make_server(appendonly="everysec", config=config)
    with caplog.at_level(logging.WARNING, "cwist_jq"), cwist_jq.connect(server.url):
        pass
    assert ("noeviction" in caplog.text) == (policy != "noeviction")


@pytest.mark.engine("redis")
@pytest.mark.servers("all")
def test_an_evicted_queue_goes_on(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    open_queue: Callable[..., Any],
    queue_name: str,
) -> None:
    """S04: jobs that the server threw away are gone, but no call fails and new jobs arrive."""
    server = make_server(config={"maxmemory-policy": "allkeys-random"})
    observer = make_observer("redis", server.url)
    queue = open_queue(server.url, queue_name, max_retries=1)
    for number in range(4):
        queue.enqueue(b"%d" % number)
    must_claim(queue).nack(reason="a letter")
    held = must_claim(queue)
    observer.client.config_set("maxmemory", observer.client.info("memory")["used_memory"] + 500_000)
    for number in range(5_000):
        if not observer.client.exists(observer.key(queue_name, "s")):
            break
        observer.client.set(f"filler:{number}", b"x" * 5_000)
    assert observer.ready_and_claimed(queue_name) == 0
    observer.client.config_set("maxmemory", 0)
    claim = blocked_claim(queue, observer)
    with pytest.raises(cwist_jq.LeaseLost):
        held.ack()
    queue.enqueue(b"after")
    job = claim.result(5.0)
    assert job.payload == b"after"
    job.ack()
    assert queue.dead_count() <= 1
    assert drain(queue, observer) == []
