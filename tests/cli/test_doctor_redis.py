"""What doctor finds on Redis, before servers that something is wrong with."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.observers import RedisObserver, observe
from tests.waiting import PATIENCE

pytestmark = pytest.mark.engine("redis")

Make = Callable[..., Any]


def _found(url: str, *queues: str, level: str | None = None) -> list[dict[str, Any]]:
    """The findings that are worse than fine, or of one level."""
    done = Program(url)("doctor", *queues, "--json")
    assert done.err == ""
    wrong = any(finding["level"] == "wrong" for finding in done.records)
    assert done.code == (exits.FAILED if wrong else exits.DONE)
    return [
        finding
        for finding in done.records
        if (finding["level"] == level if level else finding["level"] not in {"ok", "note"})
    ]


def _checks(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(finding["check"], finding["level"]) for finding in found]


def _redis(url: str) -> RedisObserver:
    made = observe("redis", url)
    assert isinstance(made, RedisObserver)
    return made


def _mend(url: str, finding: dict[str, Any]) -> None:
    """Runs the redis-cli commands that a finding names."""
    observer = _redis(url)
    try:
        for command in finding["mend"].split("&&"):
            program, *words = shlex.split(command)
            assert program == "redis-cli"
            if words[:2] != ["CONFIG", "REWRITE"]:  # the test's server has no file
                observer.client.execute_command(*words)
    finally:
        observer.close()


def test_a_good_server(make_server: Make) -> None:
    server = make_server(appendonly="everysec", maxmemory=200 << 20)
    with cwist_jq.connect(server.url) as conn:
        queue = conn.queue("emails")
        queue.enqueue(b"x")
        assert queue.claim(PATIENCE) is not None
    assert _found(server.url) == []
    assert _found(server.url, "emails", "unused") == []


@pytest.mark.parametrize(
    ("options", "check", "level"),
    [
        ({}, "persistence", "wrong"),
        ({"appendonly": "no"}, "persistence", "warning"),
        (
            {"appendonly": "everysec", "config": {"maxmemory-policy": "allkeys-lru"}},
            "eviction",
            "warning",
        ),
        (
            {
                "appendonly": "everysec",
                "config": {"maxmemory-policy": "allkeys-lru", "maxmemory": 100 << 20},
            },
            "eviction",
            "wrong",
        ),
    ],
)
def test_a_bad_server_and_what_mends_it(
    make_server: Make, options: dict[str, Any], check: str, level: str
) -> None:
    server = make_server(**options)
    found = _found(server.url)
    assert _checks(found) == [(check, level)]
    strict = Program(server.url)("doctor", "--strict")
    assert strict.code == exits.FAILED
    assert f"mend: {found[0]['mend']}" in strict.out
    _mend(server.url, found[0])
    assert _found(server.url) == []


def test_snapshots_alone(make_server: Make) -> None:
    server = make_server()
    observer = _redis(server.url)
    observer.client.config_set("save", "60 1")
    (found,) = _found(server.url)
    assert (found["check"], found["level"]) == ("persistence", "warning")
    _mend(server.url, found)
    assert _found(server.url) == []
    observer.close()


def test_memory_that_is_nearly_full(make_server: Make) -> None:
    server = make_server(appendonly="everysec", maxmemory=200 << 20)
    observer = _redis(server.url)
    used = observer.client.info()["used_memory"]
    observer.client.config_set("maxmemory", used * 104 // 100)
    (found,) = _found(server.url)
    assert (found["check"], found["level"]) == ("memory", "warning")
    _mend(server.url, found)
    assert _found(server.url) == []
    observer.close()


def test_a_replica(make_server: Make) -> None:
    primary = make_server(appendonly="everysec")
    words = ["--replicaof", "127.0.0.1", str(primary.port)]
    replica = make_server(appendonly="everysec", arguments=words)
    found = [one for one in _found(replica.url) if one["check"] == "role"]
    assert found[0]["mend"] == f"name the primary: --url redis://127.0.0.1:{primary.port}"


def test_no_server(make_server: Make) -> None:
    server = make_server()
    server.stop()
    done = Program(server.url)("doctor", "--timeout", "0.3", "--json")
    assert (done.code, done.record["check"]) == (exits.FAILED, "connection")


def test_a_wrong_password(make_server: Make) -> None:
    server = make_server(password="right")
    url = f"redis://:wrong@127.0.0.1:{server.port}"
    (found,) = _found(url)
    assert (found["check"], found["level"]) == ("connection", "wrong")
    assert "password" in found["mend"]


# ---- rights ----

_WORKER = (
    "~cwist:jq:emails:* +xadd +xreadgroup +xack +xdel +xclaim +xpending +xrange +xgroup|create "
    "+eval +evalsha +hget +hmget +hset +hdel +zadd +zrem +zrange +zrangebyscore +rpush +lrange "
    "+llen +time"
)


def _acl(rules: str) -> dict[str, str]:
    text = f"user default on nopass ~* +@all\nuser w on >pw {rules} +ping +info +hello\n"
    return {"acl": text, "user": "w", "password": "pw"}


def test_the_documented_rights_are_enough(make_server: Make) -> None:
    server = make_server(appendonly="everysec", **_acl(f"{_WORKER} +multi +discard"))
    assert [one for one in _found(server.url, "emails") if one["check"] == "rights"] == []


def test_missing_rights_are_named_and_mended(make_server: Make) -> None:
    rules = _WORKER.replace("+xclaim ", "").replace("+rpush ", "")
    server = make_server(appendonly="everysec", **_acl(f"{rules} +multi +discard"))
    (found,) = [one for one in _found(server.url, "emails") if one["check"] == "rights"]
    assert "may not xclaim, rpush" in found["text"]
    assert found["mend"] == "redis-cli ACL SETUSER w +xclaim +rpush"
    _mend(f"redis://127.0.0.1:{server.port}", found)
    assert [one for one in _found(server.url, "emails") if one["check"] == "rights"] == []


def test_missing_keys_are_named_and_mended(make_server: Make) -> None:
    server = make_server(appendonly="everysec", **_acl(f"{_WORKER} +multi +discard"))
    (found,) = [one for one in _found(server.url, "other") if one["check"] == "rights"]
    assert found["mend"] == "redis-cli ACL SETUSER w '~cwist:jq:other:*'"
    _mend(f"redis://127.0.0.1:{server.port}", found)
    assert [one for one in _found(server.url, "other") if one["check"] == "rights"] == []


def test_asking_for_rights_does_nothing(make_server: Make) -> None:
    server = make_server(appendonly="everysec")
    _found(server.url, "emails")
    observer = _redis(server.url)
    assert observer.keys("emails") == []
    observer.close()


# ---- queues ----


@pytest.fixture
def good(make_server: Make) -> str:
    """The URL of a server that nothing is wrong with."""
    return str(make_server(appendonly="everysec", maxmemory=200 << 20).url)


def test_a_paused_queue(good: str) -> None:
    with cwist_jq.connect(good) as conn:
        conn.queue("emails").pause()
        conn.queue("emails").enqueue(b"x")
    (found,) = _found(good)
    assert (found["level"], found["mend"]) == ("warning", "cwist-jq resume emails")
    Program(good)(*found["mend"].split()[1:]).good()
    assert _found(good) == []


def test_a_key_of_another_type(good: str) -> None:
    observer = _redis(good)
    observer.client.set("cwist:jq:emails:dead", "x")
    found = [one for one in _found(good, "emails") if one["check"] == "keys"]
    assert _checks(found) == [("keys", "wrong")]
    _mend(good, found[0])
    assert _found(good, "emails") == []
    observer.close()


def test_jobs_that_nobody_brings_back(good: str) -> None:
    with cwist_jq.connect(good) as conn:
        queue = conn.queue("emails", visibility_timeout=0.01)
        queue.enqueue(b"x")
        job = queue.claim(PATIENCE)
        assert job is not None
        observer = _redis(good)
        entry = observer.pending("emails")[0]["message_id"]
        key = observer.key("emails", "s")
        consumer = observer.pending("emails")[0]["consumer"]
        words = {"idle": 90_000, "justid": True}
        observer.client.xclaim(key, "cwist-jq", consumer, 0, [entry], **words)
        observer.close()
        found = _found(good)
        assert ("workers", "wrong") in _checks(found)
        assert "1 claimed jobs whose lease is over" in found[0]["text"]


def test_what_older_clients_left(good: str) -> None:
    """The shapes are those of TRANSITIONS: a hash of counts, and records without our first byte."""
    observer = _redis(good)
    old = b"\x00\x00\x00\x01\x00\x00\x00\x05tpayload"
    observer.client.hset(observer.key("emails", "a"), "1-1", 3)
    observer.client.rpush(observer.key("emails", "dead"), old)
    observer.client.zadd(observer.key("emails", "delay"), {old: 5})
    found = [one for one in _found(good, "emails", level="note") if one["check"] == "older clients"]
    assert len(found) == 3
    _mend(good, found[0])
    assert not observer.client.exists(observer.key("emails", "a"))
    observer.close()


def test_a_queue_of_a_later_version(good: str) -> None:
    observer = _redis(good)
    observer.client.hset(observer.key("emails", "conf"), "version", 2)
    assert ("settings", "wrong") in _checks(_found(good, "emails"))
    observer.close()


def test_a_clock_that_is_off() -> None:
    from cwist_jq.cli.checks_clock import clock_finding

    now = time.time()
    assert clock_finding(now, now - 0.1, now + 0.1).level == "ok"
    assert clock_finding(now + 60, now, now).level == "warning"
    assert "60.0 s ahead" in clock_finding(now + 60, now, now).text
    assert "60.0 s behind" in clock_finding(now - 60, now, now).text
