"""The names of the queues on a server."""

from __future__ import annotations

from cwist_jq.cli import address
from cwist_jq.cli.failure import Failure
from cwist_jq.cli.probe import ProbeFailed
from cwist_jq.cli.probe_nats import NatsProbe
from cwist_jq.cli.probe_redis import RedisProbe

__all__ = ["nats_queues", "queue_names", "redis_queues"]

_DEAD = "_DEAD"


def queue_names(url: str, timeout: float) -> list[str]:
    """All queues of the server, in order of their names."""
    place = address.parse(url)
    try:
        if place.engine == "redis":
            with RedisProbe(place, timeout) as redis:
                return redis_queues(redis)
        with NatsProbe(place, timeout) as nats:
            return nats_queues(nats)
    except ProbeFailed as error:
        raise Failure(f"the queues cannot be listed, name them: {error}") from None


def redis_queues(probe: RedisProbe) -> list[str]:
    """The names in the keys cwist:jq:<name>:s and :dead. In a cluster only those of this node."""
    found: set[str] = set()
    for suffix in ("s", "dead", "delay"):
        cursor = b"0"
        while True:
            cursor, keys = probe.call(
                "SCAN", cursor, "MATCH", f"cwist:jq:*:{suffix}", "COUNT", 1000
            )
            found.update(key.decode("utf-8", "replace")[9 : -len(suffix) - 1] for key in keys)
            if cursor == b"0":
                break
    return sorted(name.strip("{}") for name in found)


def nats_queues(probe: NatsProbe) -> list[str]:
    """The streams whose subjects are those of a queue."""
    found = []
    total = 1
    offset = 0
    while offset < total:
        page = probe.api("STREAM.LIST", {"offset": offset})
        total = page["total"]
        streams = page.get("streams") or []
        offset += len(streams) or total
        for stream in streams:
            name = stream["config"]["name"]
            subjects = stream["config"].get("subjects") or []
            if f"{name}.jobs" in subjects and not name.endswith(_DEAD):
                found.append(name.replace("=2E", ".").replace("=3A", ":"))
    return sorted(found)
