"""What doctor looks at on a Redis server."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cwist_jq.cli import units
from cwist_jq.cli.checks_clock import clock_finding
from cwist_jq.cli.finding import Finding, asked, fine, note, warning, wrong
from cwist_jq.cli.probe_redis import RedisProbe

__all__ = ["server"]

_NEARLY_FULL = 0.9


def server(probe: RedisProbe) -> Iterator[Finding]:
    """The checks that need no queue."""
    for name, check in (
        ("version", _version),
        ("role", _role),
        ("persistence", _persistence),
        ("disk", _disk),
        ("eviction", _eviction),
        ("memory", _memory),
        ("clock", _clock),
    ):
        yield from asked(name, lambda check=check: check(probe))  # type: ignore[misc]


def _version(probe: RedisProbe) -> Iterator[Finding]:
    info = probe.info()
    valkey = info.get("valkey_version")
    name = f"Valkey {valkey}" if valkey else f"Redis {info.get('redis_version', 'unknown')}"
    cluster = ", a cluster" if probe.is_cluster() else ""
    yield fine("version", name + cluster)


def _role(probe: RedisProbe) -> Iterator[Finding]:
    info = probe.info()
    if info.get("role") != "slave":
        yield fine("role", "takes writes")
        return
    primary = f"{info.get('master_host')}:{info.get('master_port')}"
    yield wrong(
        "role",
        "this server is a replica: it takes no jobs",
        f"name the primary: --url redis://{primary}",
    )


def _persistence(probe: RedisProbe) -> Iterator[Finding]:
    on = "redis-cli CONFIG SET appendonly yes && redis-cli CONFIG REWRITE"
    if probe.info().get("aof_enabled") == "1":
        rule = probe.config("appendfsync")
        if rule == "no":
            yield warning(
                "persistence",
                "the AOF is written when the system likes: a power cut may lose half a minute",
                "redis-cli CONFIG SET appendfsync everysec && redis-cli CONFIG REWRITE",
            )
        else:
            yield fine("persistence", f"AOF, appendfsync {rule or 'unknown'}")
    elif probe.config("save"):
        yield warning(
            "persistence",
            "snapshots alone: a crash loses all jobs since the last one",
            on,
        )
    else:
        yield wrong(
            "persistence", "nothing is kept on disk: all jobs are gone when the server ends", on
        )


def _disk(probe: RedisProbe) -> Iterator[Finding]:
    info = probe.info()
    for field, what, mend in (
        ("aof_last_write_status", "the last write of the AOF failed", "free its disk; see its log"),
        (
            "rdb_last_bgsave_status",
            "the last snapshot failed",
            "free its disk, then: redis-cli BGSAVE",
        ),
    ):
        if info.get(field, "ok") != "ok":
            yield wrong("disk", f"{what}: the server may refuse jobs", mend)


def _eviction(probe: RedisProbe) -> Iterator[Finding]:
    info = probe.info()
    policy = info.get("maxmemory_policy", "unknown")
    if not policy.startswith("allkeys-"):
        yield fine("eviction", f"{policy}: no key of a queue is evicted")
        return
    mend = "redis-cli CONFIG SET maxmemory-policy noeviction && redis-cli CONFIG REWRITE"
    if info.get("maxmemory") == "0":
        yield warning("eviction", f"{policy}: with a maxmemory it would delete whole queues", mend)
    else:
        yield wrong("eviction", f"{policy}: a full server deletes whole queues", mend)


def _memory(probe: RedisProbe) -> Iterator[Finding]:
    info = probe.info()
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if most == 0:
        yield note("memory", f"{units.size(used)} used, no maxmemory: the system sets the limit")
    elif used > most * _NEARLY_FULL:
        yield warning(
            "memory",
            f"{units.size(used)} of {units.size(most)} used: a full server takes no jobs",
            f"redis-cli CONFIG SET maxmemory {2 * most}",
        )
    else:
        yield fine("memory", f"{units.size(used)} of {units.size(most)} used")


def _clock(probe: RedisProbe) -> Iterator[Finding]:
    before = time.time()
    seconds, micros = probe.call("TIME")
    yield clock_finding(int(seconds) + int(micros) / 1e6, before, time.time())
