"""Whether the user may do on Redis what a worker needs.

The commands are put into a MULTI and thrown away: the server judges rights when it takes a command
in, and nothing is done. ACL DRYRUN answers where MULTI is not allowed; it needs Redis 7 and a right
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

from cwist_jq.cli.finding import Finding, fine, note, wrong
from cwist_jq.cli.probe import Refusal
from cwist_jq.cli.probe_redis import RedisProbe

__all__ = ["rights"]

_G = "cwist-jq"
_SHA = "0" * 40

Command = Sequence[Union[str, int]]


def _needed(prefix: str) -> list[Command]:
    """What a worker sends, as docs/states.md lists it, in a form that fits."""
    s, delay, wait = f"{prefix}s", f"{prefix}delay", f"{prefix}wait"
    dead, conf = f"{prefix}dead", f"{prefix}conf"
    return [
        ("XADD", s, "*", "type", "", "payload", ""),
        ("XREADGROUP", "GROUP", _G, "doctor", "COUNT", 1, "STREAMS", s, ">"),
        ("XACK", s, _G, "0-0"),
        ("XDEL", s, "0-0"),
        ("XCLAIM", s, _G, "doctor", 0, "0-0", "JUSTID"),
        ("XPENDING", s, _G),
        ("XRANGE", s, "-", "+", "COUNT", 1),
        ("XGROUP", "CREATE", s, _G, 0, "MKSTREAM"),
        ("EVAL", "return 0", 1, s),
        ("EVALSHA", _SHA, 1, s),
        ("HGET", conf, "version"),
        ("HMGET", wait, "0-0"),
        ("HSET", wait, "0-0", ""),
        ("HDEL", wait, "0-0"),
        ("ZADD", delay, 0, "0-0"),
        ("ZREM", delay, "0-0"),
        ("ZRANGE", delay, 0, 0),
        ("ZRANGEBYSCORE", delay, 0, 0),
        ("RPUSH", dead, ""),
        ("LRANGE", dead, -1, -1),
        ("LLEN", dead),
        ("TIME",),
    ]


def _operator(prefix: str) -> list[Command]:
    """What the commands for operators, dedupe keys and limits need besides."""
    s, delay, dead = f"{prefix}s", f"{prefix}delay", f"{prefix}dead"
    return [
        ("XLEN", s),
        ("XINFO", "GROUPS", s),
        ("ZCARD", delay),
        ("ZSCORE", delay, "0-0"),
        ("HEXISTS", f"{prefix}dedupe", ""),
        ("HSTRLEN", f"{prefix}deadbody", "0-0"),
        ("LREM", dead, 0, ""),
    ]


def rights(probe: RedisProbe, prefix: str) -> Iterator[Finding]:
    """Says which commands and keys are missing."""
    user = _user(probe)
    denied, keys = _denied(probe, user, _needed(prefix))
    further, _ = _denied(probe, user, _operator(prefix))
    if keys:
        yield wrong(
            "rights",
            f"the user {user} may not touch the keys {prefix}*",
            f"redis-cli ACL SETUSER {user} '~{prefix}*'",
        )
    if denied:
        yield wrong(
            "rights",
            f"the user {user} may not {', '.join(denied)}, which workers need",
            f"redis-cli ACL SETUSER {user} {' '.join('+' + name for name in denied)}",
        )
    if further and not keys:
        yield note(
            "rights",
            f"the user {user} may not {', '.join(further)}: some of stats, dead, purge, keys and "
            "limits are denied",
            f"redis-cli ACL SETUSER {user} {' '.join('+' + name for name in further)}",
        )
    if not (denied or keys):
        yield fine("rights", f"the user {user} may do all that a worker needs")


def _user(probe: RedisProbe) -> str:
    try:
        return str(probe.call("ACL", "WHOAMI").decode())
    except Refusal:
        return probe.user


def _denied(probe: RedisProbe, user: str, commands: list[Command]) -> tuple[list[str], bool]:
    """The names of the commands that are denied, and whether keys are."""
    try:
        probe.call("MULTI")
    except Refusal:
        return _dry_run(probe, user, commands)
    refusals = []
    for words in commands:
        try:
            probe.call(*words)
        except Refusal as refusal:
            refusals.append((_name(words), str(refusal)))
    probe.call("DISCARD")
    return _judge([(name, text) for name, text in refusals if text.startswith("NOPERM")])


def _dry_run(probe: RedisProbe, user: str, commands: list[Command]) -> tuple[list[str], bool]:
    refusals = []
    for words in commands:
        answer = probe.call("ACL", "DRYRUN", user, *words)
        if answer != b"OK":
            refusals.append((_name(words), answer.decode("utf-8", "replace")))
    return _judge(refusals)


def _judge(refusals: list[tuple[str, str]]) -> tuple[list[str], bool]:
    # "...to run the 'xadd' command" or "...to access one of the keys used as arguments"
    keys = [name for name, text in refusals if "access" in text]
    return [name for name, _ in refusals if name not in keys], bool(keys)


def _name(words: Command) -> str:
    """A command as ACL SETUSER names it."""
    parent = words[0] in {"XGROUP", "XINFO"}
    return "|".join(str(word) for word in words[: 2 if parent else 1]).lower()
