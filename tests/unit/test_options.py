"""Durations, counts and texts: what is accepted, and what is refused in which words."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
from typing import Any

import pytest

from cwist_jq import InvalidParam, InvalidType, options

WEEK_MS = 7 * options.DAY_MS
NAN, INF = float("nan"), float("inf")


class Whole:
    """A whole number that is no int, as other libraries have."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (30, 30_000),
        (30.0, 30_000),
        (0.01, 10),
        (0.0104, 10),
        (0.29, 290),
        (1.1, 1100),
        (604_800, WEEK_MS),
        (604_800.0, WEEK_MS),
        (Whole(3), 3000),
        (dt.timedelta(milliseconds=10), 10),
        (dt.timedelta(days=7), WEEK_MS),
        (dt.timedelta(seconds=1, microseconds=499), 1000),
        (dt.timedelta(seconds=1, microseconds=501), 1001),
    ],
)
def test_duration(value: object, expected: int) -> None:
    assert options.milliseconds("field", value, 10, WEEK_MS) == expected


@pytest.mark.parametrize(
    "value",
    [
        0,
        0.0,
        -0.0,
        -1,
        -0.5,
        0.009,
        0.0099999,
        604_800.001,
        604_801,
        2**31,
        2**53,
        2**63 - 1,
        2**64,
        pytest.param(10**5000, id="many-digits"),
        1e308,
        -1e308,
        NAN,
        INF,
        -INF,
        dt.timedelta(0),
        dt.timedelta(milliseconds=-10),
        dt.timedelta(microseconds=9999),
        dt.timedelta(days=7, microseconds=1),
        dt.timedelta.max,
        dt.timedelta.min,
    ],
)
def test_duration_out_of_range(value: object) -> None:
    with pytest.raises(InvalidParam) as caught:
        options.milliseconds("visibility_timeout", value, 10, WEEK_MS)
    assert not isinstance(caught.value, InvalidType)
    assert caught.value.text.startswith("visibility_timeout is ")
    assert "0.01 to 604800 seconds" in caught.value.text


@pytest.mark.parametrize(
    "value",
    [True, False, None, "1", b"1", [1], 1j, decimal.Decimal(1), fractions.Fraction(1), object()],
)
def test_duration_of_wrong_type(value: object) -> None:
    with pytest.raises(InvalidType, match=r"visibility_timeout is a .*0\.01 to 604800 seconds"):
        options.milliseconds("visibility_timeout", value, 10, WEEK_MS)


@pytest.mark.parametrize("value", [1e-9, 0.0001, 5e-324, dt.timedelta(microseconds=1)])
@pytest.mark.parametrize("least", [0, 1])
def test_a_positive_duration_never_becomes_zero(value: object, least: int) -> None:
    assert options.milliseconds("field", value, least, WEEK_MS) == 1


def test_zero_where_it_is_allowed() -> None:
    assert options.milliseconds("retry_delay", 0, 0, WEEK_MS) == 0
    assert options.milliseconds("retry_delay", 0.0, 0, WEEK_MS) == 0
    assert options.milliseconds("retry_delay", dt.timedelta(0), 0, WEEK_MS) == 0


def test_claim_timeout() -> None:
    assert options.timeout(None) == 2**64 - 1
    assert options.timeout(0) == 0
    assert options.timeout(10**15) == 10**18
    assert options.timeout((2**64 - 2) // 1000) < 2**64 - 1
    for value in (-1, NAN, INF, 2**64, 1e300, 10**6000):
        with pytest.raises(InvalidParam, match="for ever"):
            options.timeout(value)
    for wrong in (True, "5"):
        with pytest.raises(InvalidType, match="for ever"):
            options.timeout(wrong)


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (1_000_000, 1_000_000), (Whole(5), 5)])
def test_count(value: object, expected: int) -> None:
    assert options.count("max_retries", value, 1, 1_000_000) == expected


@pytest.mark.parametrize("value", [0, -1, 1_000_001, 2**31, 2**32, 2**32 + 1, 2**64])
def test_count_out_of_range(value: int) -> None:
    with pytest.raises(InvalidParam, match=r"max_retries is .*; allowed: 1 to 1000000"):
        options.count("max_retries", value, 1, 1_000_000)


@pytest.mark.parametrize("value", [True, 5.0, NAN, "5", None, decimal.Decimal(5)])
def test_count_of_wrong_type(value: Any) -> None:
    with pytest.raises(InvalidType, match=r"max_retries is a .*1 to 1000000"):
        options.count("max_retries", value, 1, 1_000_000)


def test_text() -> None:
    assert options.text("type", "wélcome") == "wélcome".encode()
    assert options.text("type", "") == b""
    for value in ("a\0b", "\ud800"):
        with pytest.raises(InvalidParam, match="type holds"):
            options.text("type", value)
    for wrong in (b"a", 0, None, ["a"]):
        with pytest.raises(InvalidType, match=r"type is a .*allowed: a str"):
            options.text("type", wrong)


def test_a_refused_text_is_not_repeated() -> None:
    with pytest.raises(InvalidParam) as caught:
        options.text("url", "redis://:secret@host\0")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (1, 100), (0.0, 0), (1.0, 100), (0.1, 10), (0.29, 29), (0.0001, 1), (Whole(1), 100)],
)
def test_percent(value: object, expected: int) -> None:
    assert options.percent("retry_jitter", value) == expected


@pytest.mark.parametrize("value", [-0.1, 1.1, 20, NAN, INF, -INF])
def test_percent_out_of_range(value: object) -> None:
    with pytest.raises(InvalidParam, match=r"retry_jitter is .*; allowed: 0 to 1"):
        options.percent("retry_jitter", value)


@pytest.mark.parametrize("value", [True, "0.1", None, decimal.Decimal("0.1")])
def test_percent_of_wrong_type(value: object) -> None:
    with pytest.raises(InvalidType, match=r"retry_jitter is a .*from 0 to 1"):
        options.percent("retry_jitter", value)


def test_flag() -> None:
    assert options.flag("dead", True) is True  # noqa: FBT003 (it is what is checked)
    assert options.flag("dead", False) is False  # noqa: FBT003
    for wrong in (0, 1, "no", None):
        with pytest.raises(InvalidType, match=r"dead is a .*True or False"):
            options.flag("dead", wrong)


def test_one_of() -> None:
    known = {"fixed": 0, "exponential": 1}
    assert options.one_of("retry_backoff", "exponential", known) == 1
    with pytest.raises(InvalidParam, match="'Fixed'; allowed: 'fixed' or 'exponential'"):
        options.one_of("retry_backoff", "Fixed", known)
    for wrong in (0, None, ["fixed"]):
        with pytest.raises(InvalidType, match=r"retry_backoff is a .*'fixed' or"):
            options.one_of("retry_backoff", wrong, known)
