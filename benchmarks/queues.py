"""Makes and removes queues on a server, through other people's clients.

What is made here is what docs/wire-format.md allows: a queue of the library finds it in order, and
the bare loops need no code for it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import nats
import redis

GROUP = "cwist-jq"

#: Of every queue here: no lease ends while a benchmark runs.
VISIBILITY_MS = 3_600_000


def redis_client(url: str) -> redis.Redis:
    """A client of somebody else's."""
    parts = urlsplit(url)
    return redis.Redis(host=parts.hostname or "", port=parts.port or 0, socket_timeout=120)


def key(queue: str, suffix: str) -> str:
    """A Redis key of a queue."""
    return f"cwist:jq:{queue}:{suffix}"


async def _api(client: Any, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = json.dumps(body).encode() if body is not None else b""
    answer = await client.request(f"$JS.API.{subject}", data, timeout=120)
    found: dict[str, Any] = json.loads(answer.data)
    if "error" in found:
        raise RuntimeError(f"{subject}: {found['error']}")
    return found


async def _make_nats(url: str, queue: str) -> None:
    stream = {
        "name": queue,
        "subjects": [f"{queue}.jobs", f"{queue}.jobs.>"],
        "retention": "workqueue",
        "storage": "file",
        "discard": "old",
        "num_replicas": 1,
    }
    consumer = {
        "durable_name": GROUP,
        "filter_subject": f"{queue}.>",
        "ack_policy": "explicit",
        "ack_wait": VISIBILITY_MS * 1_000_000,
        "deliver_policy": "all",
        "max_deliver": -1,
        "max_ack_pending": -1,
        "max_waiting": 100_000,
    }
    client = await nats.connect(url)
    await _api(client, f"STREAM.CREATE.{queue}", stream)
    await _api(
        client,
        f"CONSUMER.DURABLE.CREATE.{queue}.{GROUP}",
        {"stream_name": queue, "config": consumer},
    )
    await client.close()


async def _make_nats_dead(url: str, queue: str) -> None:
    stream = {
        "name": f"{queue}_DEAD",
        "subjects": [f"{queue}.dead.>"],
        "retention": "limits",
        "storage": "file",
    }
    client = await nats.connect(url)
    await _api(client, f"STREAM.CREATE.{stream['name']}", stream)
    await client.close()


def make_nats_dead(url: str, queue: str) -> None:
    """Makes the place of a queue's dead letters."""
    asyncio.run(_make_nats_dead(url, queue))


async def _drop_nats(url: str) -> None:
    client = await nats.connect(url)
    for name in (await _api(client, "STREAM.NAMES")).get("streams") or []:
        await _api(client, f"STREAM.DELETE.{name}")
    await client.close()


def make(engine: str, url: str, queue: str) -> None:
    """Makes an empty queue with the options of the library's own."""
    if engine == "redis":
        with redis_client(url) as client:
            client.xgroup_create(key(queue, "s"), GROUP, "0", mkstream=True)
            conf = {"version": "1", "visibility": str(VISIBILITY_MS)}
            client.hset(key(queue, "conf"), mapping=conf)
    else:
        asyncio.run(_make_nats(url, queue))


def drop_all(engine: str, url: str) -> None:
    """Removes everything from a server."""
    if engine == "redis":
        with redis_client(url) as client:
            client.flushall()
    else:
        asyncio.run(_drop_nats(url))
