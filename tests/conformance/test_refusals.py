"""What is out of range is refused by name, on both engines alike, and nothing is sent (SPEC 5)."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import claim, drain, no_job
from tests.observers import NatsObserver, Observer, RedisObserver
from tests.proxy import UP, Proxy

HUGE = 10**400


@pytest.fixture
def watched(proxy: Proxy, proxy_url: str) -> Iterator[Any]:
    """A connection whose every byte to the server is seen by `proxy`."""
    with cwist_jq.connect(proxy_url) as conn:
        proxy.forget()
        yield conn


def _untouched(observer: Observer, name: str) -> bool:
    if isinstance(observer, RedisObserver):
        return observer.keys(name) == []
    assert isinstance(observer, NatsObserver)
    return observer.stream_info(observer.stream(name)) is None


# ---- options of a queue ----

NAMES = {
    "empty": ("", "name is empty"),
    "too long": ("x" * 129, "name is too long"),
    "too long when encoded": ("." * 84, "name is too long with . and : counted three times"),
    "space": ("job worker", "name has the byte 0x20 at position 3"),
    "tab": ("\tjobs", "name has the byte 0x09 at position 0"),
    "space at the end": ("jobs ", "name has the byte 0x20 at position 4"),
    "star": ("a*", "name has the byte 0x2a at position 1"),
    "greater": (">", "name has the byte 0x3e at position 0"),
    "slash": ("/x", "name has the byte 0x2f at position 0"),
    "backslash": ("a\\b", "name has the byte 0x5c at position 1"),
    "brace": ("{a}", "name has the byte 0x7b at position 0"),
    "equals": ("a=2Eb", "name has the byte 0x3d at position 1"),
    "protocol": ("x\r\nPUB y 1\r\nz", "name has the byte 0x0d at position 1"),
    "umlaut": ("ünï", "name has the byte 0xc3 at position 0"),
    "emoji": ("\N{GRINNING FACE}", "name has the byte 0xf0 at position 0"),
    "dead": ("jobs_DEAD", "name ends in _DEAD"),
    "only dead": ("_DEAD", "name ends in _DEAD"),
    "NUL": ("a\0b", "name holds a NUL character"),
    "surrogate": ("a\ud800", "name holds half of a surrogate pair"),
    "bytes": (b"jobs", "name is a bytes"),
    "None": (None, "name is a NoneType"),
}


@pytest.mark.parametrize(("name", "words"), NAMES.values(), ids=NAMES)
def test_names(watched: Any, proxy: Proxy, name: Any, words: str) -> None:
    """N01, N02: the same rule on both engines; nothing raw on the wire."""
    with pytest.raises(cwist_jq.InvalidParam, match=re.escape(words)) as caught:
        watched.queue(name)
    assert "allowed:" in str(caught.value)
    assert proxy.pieces(UP) == []


CONSUMERS = {
    "empty": ("", "consumer has 0 characters"),
    "too long": ("x" * 129, "consumer has 129 characters"),
    "space": ("a b", "consumer has the byte 0x20 at position 1"),
    "newline": ("a\n", "consumer has the byte 0x0a at position 1"),
    "delete": ("a\x7f", "consumer has the byte 0x7f at position 1"),
    "umlaut": ("ü", "consumer has the byte 0xc3 at position 0"),
    "NUL": ("a\0", "consumer holds a NUL character"),
    "number": (7, "consumer is a int"),
}


@pytest.mark.parametrize(("consumer", "words"), CONSUMERS.values(), ids=CONSUMERS)
def test_consumers(watched: Any, proxy: Proxy, queue_name: str, consumer: Any, words: str) -> None:
    """N01, N02."""
    with pytest.raises(cwist_jq.InvalidParam, match=re.escape(words)) as caught:
        watched.queue(queue_name, consumer=consumer)
    assert "allowed:" in str(caught.value)
    assert proxy.pieces(UP) == []


DAY = 86400
NUMBERS: list[tuple[str, list[Any], str]] = [
    (
        "visibility_timeout",
        [0, -1, 0.0099, 0.001, 7 * DAY + 0.001, 8 * DAY, 2**31, 2**32, 2**53, 2**63 - 1, HUGE],
        "0.01 to 604800 seconds",
    ),
    ("max_retries", [0, -1, 1_000_001, 2**31, 2**32, 2**32 + 5, 2**63 - 1, HUGE], "1 to 1000000"),
    (
        "retry_delay",
        [-1, -0.0001, 365 * DAY + 0.001, 2**53, 2**63 - 1, HUGE],
        "0 to 31536000 seconds",
    ),
]
NO_NUMBERS = ["5", b"5", None, True, False, [5], 5j]


@pytest.mark.parametrize(("field", "values", "words"), NUMBERS, ids=[row[0] for row in NUMBERS])
def test_numbers(
    watched: Any, proxy: Proxy, queue_name: str, field: str, values: list[Any], words: str
) -> None:
    """N04: refused, never clamped, never wrapped."""
    values = [*values, *NO_NUMBERS, math.nan, math.inf, -math.inf]
    if field == "max_retries":
        values += [1.5, 5.0, dt.timedelta(seconds=1)]
    else:
        values += [dt.timedelta(days=4000), dt.timedelta(microseconds=-1)]
    for value in values:
        with pytest.raises(cwist_jq.InvalidParam, match=f"^{field} is ") as caught:
            watched.queue(queue_name, **{field: value})
        assert words in str(caught.value), value
    assert proxy.pieces(UP) == []


@pytest.mark.needs_server
def test_the_ends_of_the_ranges_are_taken(conn: Any, observer: Observer, queue_name: str) -> None:
    """N04: accepted and honoured."""
    rows: list[dict[str, Any]] = [
        {"visibility_timeout": 0.01, "max_retries": 1, "retry_delay": 0},
        {"visibility_timeout": 7 * DAY, "max_retries": 1_000_000, "retry_delay": 365 * DAY},
        {"visibility_timeout": dt.timedelta(days=7), "retry_delay": dt.timedelta(days=365)},
        {"consumer": "!~"},
        {"consumer": "x" * 128},
    ]
    for options in rows:
        with conn.queue(queue_name, **options) as queue:
            queue.enqueue(b"x")
            job = claim(queue)
            job.ack()
            visibility = options.get("visibility_timeout", 30)
            if isinstance(visibility, dt.timedelta):
                visibility = visibility.total_seconds()
            assert observer.visibility_ms(queue_name) == round(visibility * 1000)
    assert observer.ready_and_claimed(queue_name) == 0


# ---- arguments of calls ----

TYPES = {
    "too long": ("x" * 256, "type has 256 bytes"),
    "too long in UTF-8": ("é" * 128, "type has 256 bytes"),
    "NUL": ("a\0b", "type holds a NUL character"),
    "newline": ("a\nb", "type has the control character U+000A at byte 1"),
    "CRLF": ("x\r\nPUB y 1\r\nz", "type has the control character U+000D at byte 1"),
    "delete": ("a\x7f", "type has the control character U+007F at byte 1"),
    "C1": ("a\x85", "type has the control character U+0085 at byte 1"),
    "surrogate": ("a\udfff", "type holds half of a surrogate pair"),
    "bytes": (b"t", "type is a bytes"),
    "number": (7, "type is a int"),
}


@pytest.mark.parametrize(("kind", "words"), TYPES.values(), ids=TYPES)
def test_types(
    watched: Any, proxy: Proxy, observer: Observer, queue_name: str, kind: Any, words: str
) -> None:
    """P01, N02."""
    with watched.queue(queue_name) as queue:
        proxy.forget()
        with pytest.raises(cwist_jq.InvalidParam, match=re.escape(words)) as caught:
            queue.enqueue(b"x", type=kind)
        assert "allowed:" in str(caught.value)
        assert proxy.pieces(UP) == []
    assert _untouched(observer, queue_name)


def test_types_at_the_limit_are_taken(queue: cwist_jq.Queue) -> None:
    kinds = ["x" * 255, "é" * 127, "\N{GRINNING FACE}" * 63, " a b ", "=%&+:>*", "\xa0"]
    for kind in kinds:
        queue.enqueue(b"x", type=kind)
    assert [job.type for job in drain(queue, len(kinds))] == kinds


def test_claim_timeouts(watched: Any, proxy: Proxy, queue_name: str) -> None:
    """N04: negative, not a number, infinite, not a number at all."""
    refused: list[Any] = [-1, -1e-9, math.nan, math.inf, -math.inf, True, "5", [5], HUGE, 2.0**64]
    with watched.queue(queue_name) as queue:
        proxy.forget()
        for timeout in [*refused, dt.timedelta(seconds=-1)]:
            with pytest.raises(cwist_jq.InvalidParam, match=r"^timeout is "):
                queue.claim(timeout)
        assert proxy.pieces(UP) == []


def test_claim_timeouts_that_are_taken(queue: cwist_jq.Queue) -> None:
    """A positive duration below one millisecond rounds up; a timedelta counts; 0 polls."""
    for timeout in (0, 0.0, 1e-9, dt.timedelta(0), dt.timedelta(milliseconds=5), 0.004):
        no_job(queue, timeout)  # type: ignore[arg-type]
    for timeout in (2**53, 10**15, dt.timedelta.max):
        queue.enqueue(b"x")
        job = queue.claim(timeout)
        assert job is not None
        job.ack()


def test_every_refusal_is_a_value_error(conn: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        conn.queue("a b")
    with pytest.raises(TypeError, match="name"):
        conn.queue(7)
    with pytest.raises(cwist_jq.Error) as caught:
        conn.queue("")
    assert caught.value.code == -4


# ---- names that could meet ----


def test_every_allowed_character_makes_a_queue(
    conn: Any, observer: Observer, queue_name: str
) -> None:
    """N01: dots and colons work on both engines, so a queue can change its engine."""
    tail = f":{queue_name[-8:]}"
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:"
    for name in (
        letters + tail,
        "." + tail,
        ".." + tail,
        "-" + tail,
        "a..b" + tail,
        tail + "." * (83 - len(tail)),
        ("x" * 128)[: -len(tail)] + tail,
    ):
        with conn.queue(name) as queue:
            queue.enqueue(b"x")
            assert observer.ready_and_claimed(name) == 1
            drain(queue, 1)
        observer.wipe(name)


def test_queues_with_names_that_could_meet_do_not(
    conn: Any, observer: Observer, queue_name: str
) -> None:
    """N03: one dead job in each; nobody sees another's."""
    suffixes = [
        "",
        ":dead",
        ":s",
        ":delay",
        ".dead",
        ".jobs",
        "_2Edead",
        "-DEAD",
        "_dead",
        ":dead:x",
    ]
    names = [queue_name + suffix for suffix in suffixes]
    for number, name in enumerate(names):
        with conn.queue(name, max_retries=1) as queue:
            for _ in range(number + 1):
                queue.enqueue(name.encode())
    for number, name in enumerate(names):
        with conn.queue(name, max_retries=1) as queue:
            for _ in range(number + 1):
                job = claim(queue)
                assert job.payload == name.encode()
                job.nack()
            no_job(queue)
            assert queue.dead_count() == number + 1
        assert {letter.payload for letter in observer.dead(name)} == {name.encode()}
