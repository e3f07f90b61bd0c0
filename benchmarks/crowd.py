"""Makes a crowd: many jobs that wait, are in flight, delayed or dead. Not measured.

A crowd is made straight on the server, in the form that docs/wire-format.md gives it.
"""

from __future__ import annotations

import subprocess
import time

from tests import servers

from . import queues
from .rig import PROGRAMS, SIZE, Broken, Rig

KINDS = ["waiting", "in flight", "delayed", "dead"]

_PIECE = 5000
_LATER_S = 36_000

_HOLD = """
return #redis.call('XREADGROUP', 'GROUP', ARGV[1], 'crowd', 'COUNT', ARGV[2], 'STREAMS', KEYS[1],
                   '>')[1][2]
"""
_DELAY = """
for number = ARGV[1], ARGV[2] do
    local id = '1-' .. number
    redis.call('ZADD', KEYS[1], ARGV[3], id)
    redis.call('HSET', KEYS[2], id, ARGV[4])
end
"""
_BURY = """
for number = ARGV[1], ARGV[2] do
    local id = '1-' .. number
    redis.call('RPUSH', KEYS[1], '\\193' .. struct.pack('>I4', #id) .. id .. ARGV[3])
    redis.call('HSET', KEYS[2], id, ARGV[4])
end
"""


def _packed(*texts: bytes) -> bytes:
    return b"".join(len(text).to_bytes(4, "big") + text for text in texts)


def _pieces(count: int) -> list[tuple[int, int]]:
    return [(first, min(first + _PIECE - 1, count)) for first in range(1, count + 1, _PIECE)]


def _on_redis(ground: Rig, queue: str, kind: str, count: int) -> None:
    payload = bytes(SIZE)

    def key(suffix: str) -> str:
        return queues.key(queue, suffix)

    with queues.redis_client(ground.server.url) as client:
        for first, last in _pieces(count):
            if kind == "in flight":
                client.eval(_HOLD, 1, key("s"), queues.GROUP, last - first + 1)
            elif kind == "delayed":
                due = int((time.time() + _LATER_S) * 1000)
                body = b"\xc1" + _packed(b"type", b"", b"payload", payload)
                client.eval(_DELAY, 2, key("delay"), key("wait"), first, last, due, body)
            elif kind == "dead":
                rest = _packed(b"", b"5", b"lease-expired", b"", b"1", b"2", b"crowd")
                client.eval(_BURY, 2, key("dead"), key("deadbody"), first, last, rest, payload)


def _on_nats(ground: Rig, queue: str, kind: str, count: int) -> None:
    if kind == "dead":
        queues.make_nats_dead(ground.server.url, queue)
    word = "held" if kind == "in flight" else kind
    words = [str(PROGRAMS / "crowd_nats"), ground.server.url, queue, word, str(count), str(SIZE)]
    done = subprocess.run(words, cwd=servers.ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"crowd_nats: {done.stderr}")


def make(ground: Rig, queue: str, kind: str, count: int) -> None:
    """Puts so many jobs of a kind into an empty queue."""
    stored_as_jobs = kind in {"waiting", "in flight"} or (
        kind == "delayed" and ground.engine == "nats"
    )
    if stored_as_jobs:
        ground.fill(queue, count)
    if kind != "waiting":
        (_on_redis if ground.engine == "redis" else _on_nats)(ground, queue, kind, count)
