"""More than one Redis server: a replica that lags and takes over, and a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import drain, leftovers, must_claim
from tests.observers import RedisObserver
from tests.proxy import DOWN, Proxy
from tests.waiting import eventually

pytestmark = pytest.mark.engine("redis")

JOBS = 200
HALF = 8192


def test_a_replica_that_lags_takes_over(
    own_server: Any,
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    open_queue: Callable[..., Any],
    queue_name: str,
) -> None:
    """L13: acks that were not copied are forgotten, so such jobs come again; no other is lost."""
    second = make_server()
    old, new = make_observer("redis", own_server.url), make_observer("redis", second.url)
    with (
        Proxy(own_server.host, own_server.port) as way,
        Proxy(own_server.host, own_server.port) as copying,
    ):
        queue = open_queue(
            way.url("redis"), queue_name, visibility_timeout=1.0, operation_timeout=5.0
        )
        names = [b"%d" % number for number in range(JOBS + 20)]
        queue.enqueue_many(names)
        new.client.replicaof(copying.host, copying.port)
        eventually(lambda: new.client.info("replication")["master_link_status"] == "up")
        early = [must_claim(queue) for _ in range(JOBS // 2)]
        queue.ack_many(early)
        eventually(lambda: new.ready_and_claimed(queue_name) == len(names) - len(early))
        copying.stall(DOWN)
        late = [must_claim(queue) for _ in range(JOBS // 2)]
        queue.ack_many(late)
        assert old.ready_and_claimed(queue_name) == len(names) - JOBS
        new.client.replicaof("NO", "ONE")
        copying.cut()
        way.lead_to(second.host, second.port)
        way.cut()
        found = drain(queue, new)
        acked_for_good = {job.payload for job in early}
        must_come = set(names) - acked_for_good - {job.payload for job in late}
        assert must_come <= set(found)
        assert not acked_for_good & set(found)
        assert {job.payload for job in late} <= set(found), "the replica did not lag"
        assert len(found) == len(set(found))
        assert leftovers(new, queue_name) == []


# ---- a cluster ----


@pytest.fixture
def cluster(make_server: Callable[..., Any]) -> Iterator[list[tuple[Any, Any]]]:
    """Two nodes, each with half of the slots, and a client to each."""
    nodes = [make_server(config={"cluster-enabled": "yes"}) for _ in range(2)]
    clients = [RedisObserver(node.url).client for node in nodes]
    for client, first in zip(clients, (0, HALF), strict=True):
        client.execute_command("CLUSTER ADDSLOTS", *range(first, first + HALF))
    clients[0].execute_command("CLUSTER MEET", nodes[1].host, nodes[1].port)
    for client in clients:

        def ready(client: Any = client) -> bool:
            return bool(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")

        eventually(ready)
    yield list(zip(nodes, clients, strict=True))
    for client in clients:
        client.close()


@pytest.mark.servers("all")
def test_a_whole_life_on_a_cluster(
    cluster: list[tuple[Any, Any]], open_queue: Callable[..., Any]
) -> None:
    """S06: every transition, on both nodes; a queue's keys are together, whatever its name.

    A name with braces, which could choose its slot, is refused there as anywhere.
    """
    for name in ("{", "}", "{}", "a{b}c"):
        with pytest.raises(cwist_jq.InvalidParam, match="name"):
            open_queue(cluster[0][0].url, name)
    names = ("one", "two", "three", "four", "a:b", "a.b", "a-b:c.d")
    for name in names:
        queue = open_queue(
            cluster[0][0].url, name, visibility_timeout=0.3, max_retries=2, retry_delay=0.0
        )
        queue.enqueue_many([b"acked", b"retried", b"released"])
        queue.enqueue(b"delayed", delay=0.2, dedupe_key="key")
        assert queue.claim_many(1)[0].payload == b"acked"  # its lease runs out
        must_claim(queue).nack()
        must_claim(queue).release()
        for _ in range(4):
            must_claim(queue).ack()
        queue.enqueue(b"dead")
        must_claim(queue).nack(reason="no", dead=True)
        assert queue.dead_count() == 1
        assert queue.dead.requeue_all() == 1
        must_claim(queue).ack()
        stats = queue.stats()
        assert (stats.ready, stats.claimed, stats.delayed, stats.dead) == (0, 0, 0, 0)
    for _, client in cluster:
        keys = [key.decode() for key in client.keys("*")]
        assert keys, "no queue is on this node"
        assert all(key.startswith("cwist:jq:{") for key in keys)
