"""Ready jobs on Redis: the entries behind the last one that the group was given."""

from __future__ import annotations

from typing import Any

from cwist_jq.cli.peeked import Peeked
from cwist_jq.cli.probe import Refusal
from cwist_jq.cli.probe_redis import RedisProbe, pairs

__all__ = ["GROUP", "group_of", "ready"]

GROUP = b"cwist-jq"
_HEADER = b"h:"


def ready(probe: RedisProbe, queue: str, most: int) -> list[Peeked]:
    """Up to so many jobs, in the order of claims."""
    stream = f"{probe.prefix(queue)}s"
    group = group_of(probe, stream)
    after = b"(" + group[b"last-delivered-id"] if group else b"-"
    entries = probe.call("XRANGE", stream, after, "+", "COUNT", most)
    return [_job(entry, pairs(fields)) for entry, fields in entries]


def group_of(probe: RedisProbe, stream: str) -> dict[bytes, Any] | None:
    """What XINFO tells of the library's group; None when there is no stream or no group."""
    try:
        groups = probe.call("XINFO", "GROUPS", stream)
    except Refusal as refusal:
        if "no such key" in str(refusal):
            return None
        raise
    return next((found for found in map(pairs, groups) if found[b"name"] == GROUP), None)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _job(entry: bytes, fields: dict[bytes, bytes]) -> Peeked:
    key = fields.get(b"cwist-key")
    spent = fields.get(b"cwist-attempts", b"0")
    return Peeked(
        _text(fields.get(b"cwist-id", entry)),
        _text(fields.get(b"type", b"")) or None,
        int(spent) if spent.isdigit() else 0,
        None if key is None else _text(key),
        {_text(n[len(_HEADER) :]): _text(v) for n, v in fields.items() if n.startswith(_HEADER)},
        fields.get(b"payload", b""),
    )
