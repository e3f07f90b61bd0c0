"""What doctor looks at in a queue on Redis."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cwist_jq.cli import units
from cwist_jq.cli.finding import Finding, asked, fine, note, warning, wrong
from cwist_jq.cli.peek_redis import GROUP, group_of
from cwist_jq.cli.probe_redis import RedisProbe, pairs
from cwist_jq.cli.rights_redis import rights
from cwist_jq.cli.text import of_bytes

__all__ = ["queue"]

_TYPES = {
    "s": b"stream",
    "delay": b"zset",
    "wait": b"hash",
    "dead": b"list",
    "deadbody": b"hash",
    "dedupe": b"hash",
    "conf": b"hash",
}
_VERSION = b"1"
_OURS = b"\xc1"  # the first byte of what this library writes
_ID = re.compile(rb"\d+-\d+")
_SAMPLE = 100  # entries that are looked at
_GONE_MS = 60_000


def queue(probe: RedisProbe, name: str) -> Iterator[Finding]:
    """The checks of one queue."""
    prefix = probe.prefix(name)
    for title, check in (
        ("rights", lambda: rights(probe, prefix)),
        ("keys", lambda: _keys(probe, prefix)),
        ("settings", lambda: _settings(probe, prefix, name)),
        ("workers", lambda: _workers(probe, prefix, name)),
        ("older clients", lambda: _leftovers(probe, prefix, name)),
        ("dead letters", lambda: _dead(probe, prefix, name)),
    ):
        yield from asked(title, check)


def _keys(probe: RedisProbe, prefix: str) -> Iterator[Finding]:
    good = True
    for suffix, kind in _TYPES.items():
        found = probe.call("TYPE", prefix + suffix)
        if found not in {b"none", kind}:
            good = False
            yield wrong(
                "keys",
                f"{prefix}{suffix} is a {found.decode()}; a queue needs a {kind.decode()}",
                f"redis-cli RENAME {prefix}{suffix} {prefix}{suffix}.old",
            )
    if good:
        yield fine("keys", f"{prefix}* are of the right types")


def _settings(probe: RedisProbe, prefix: str, name: str) -> Iterator[Finding]:
    conf = pairs(probe.call("HGETALL", f"{prefix}conf"))
    version = conf.get(b"version", _VERSION)
    if version != _VERSION:
        yield wrong(
            "settings",
            f"the queue has wire version {of_bytes(version)}; this library knows 1",
            'pip install --upgrade "cwist_jq[cli]"',
        )
    if conf.get(b"paused", b"0") == b"1":
        yield warning("settings", "the queue is paused", f"cwist-jq resume {name}")
    visibility = conf.get(b"visibility")
    if visibility is None:
        yield note("settings", "no worker has claimed here yet")
    else:
        yield fine("settings", f"visibility timeout {int(visibility) / 1000:g} s")


def _workers(probe: RedisProbe, prefix: str, name: str) -> Iterator[Finding]:
    stream = f"{prefix}s"
    visibility = int(probe.call("HGET", f"{prefix}conf", "visibility") or 30_000)
    group = group_of(probe, stream)
    if group is None:
        length = probe.call("XLEN", stream)
        yield note("workers", f"no worker was here yet; {length} jobs wait")
        return
    late = visibility + max(visibility, 5000)
    stuck = probe.call("XPENDING", stream, GROUP, "IDLE", late, "-", "+", _SAMPLE)
    if stuck:
        more = " or more" if len(stuck) == _SAMPLE else ""
        yield wrong(
            "workers",
            f"{len(stuck)}{more} claimed jobs whose lease is over, and no worker takes them",
            f"start a worker of {name}: cwist-jq worker MODULE:ATTRIBUTE",
        )
    yield from _consumers(probe, stream, late)


def _consumers(probe: RedisProbe, stream: str, late: int) -> Iterator[Finding]:
    found = [pairs(one) for one in probe.call("XINFO", "CONSUMERS", stream, GROUP)]
    gone = [one for one in found if one[b"idle"] > max(late, _GONE_MS)]
    for one in gone[:_SAMPLE]:
        label = of_bytes(one[b"name"])
        text = f"the consumer {label} is gone for {units.age(one[b'idle'] / 1000)}"
        if one[b"pending"]:
            yield warning(
                "workers",
                f"{text} and holds {one[b'pending']} jobs",
                "any worker of the queue takes them over",
            )
        else:
            yield note(
                "workers",
                f"{text} and holds nothing",
                f"redis-cli XGROUP DELCONSUMER {stream} cwist-jq '{label}' (workers do it too)",
            )
    alive = len(found) - len(gone)
    yield fine("workers", f"{alive} {'consumer' if alive == 1 else 'consumers'} at work")


def _leftovers(probe: RedisProbe, prefix: str, name: str) -> Iterator[Finding]:
    if probe.call("EXISTS", f"{prefix}a"):
        yield note(
            "older clients",
            f"{prefix}a holds counts of an older CWIST client; nothing reads it",
            f"redis-cli DEL {prefix}a",
        )
    dead = probe.call("LRANGE", f"{prefix}dead", 0, _SAMPLE - 1)
    count = sum(not record.startswith(_OURS) for record in dead)
    if count:
        yield note(
            "older clients",
            f"{count} of the {len(dead)} oldest dead letters are an older CWIST client's",
            f"cwist-jq dead list {name} --oldest",
        )
    delayed = probe.call("ZRANGE", f"{prefix}delay", 0, _SAMPLE - 1)
    count = sum(not _ID.fullmatch(member) for member in delayed)
    if count:
        yield note(
            "older clients",
            f"{count} delayed jobs are an older CWIST client's; the next claim makes them ready",
        )


def _dead(probe: RedisProbe, prefix: str, name: str) -> Iterator[Finding]:
    count = probe.call("LLEN", f"{prefix}dead")
    if count:
        yield note("dead letters", f"{count} wait for a decision", f"cwist-jq dead list {name}")
    else:
        yield fine("dead letters", "none")
