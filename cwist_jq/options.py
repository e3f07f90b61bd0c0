"""Checks and conversion of arguments: durations to milliseconds, texts to bytes.

Nothing is clamped or wrapped. What is refused raises InvalidParam, with the argument's name and the
allowed range in the text; InvalidType when it is not even of a type that could be right.
"""

from __future__ import annotations

import sys

from cwist_jq.errors import InvalidParam, InvalidType

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from typing import Literal, Union

    Backoff = Literal["fixed", "exponential"]
    Duration = Union[float, dt.timedelta]

__all__ = [
    "batch_size",
    "count",
    "delay",
    "flag",
    "headers",
    "kind",
    "milliseconds",
    "one_of",
    "percent",
    "text",
    "timeout",
]

MS = 0.001
DAY_S = 86_400.0
DAY_MS = 86_400_000
DELAY_MAX_MS = 365 * DAY_MS
AGE_MAX_MS = 100 * DELAY_MAX_MS
BATCH_MAX = 1000
HEADERS_MAX = 64
FOR_EVER_MS = 2**64 - 1


def _integer(value: object) -> int | None:
    """The value as an int when it is a whole number of any type other than bool."""
    index = getattr(type(value), "__index__", None)
    if index is None or isinstance(value, bool):
        return None
    try:
        return int(index(value))
    except TypeError:
        return None


def _exact_milliseconds(value: object) -> float | None:
    """The duration in milliseconds, not yet rounded; None when it is not a duration."""
    if isinstance(value, float):
        return value * 1000
    whole = _integer(value)
    if whole is not None:
        return whole * 1000
    # Only a program that has imported datetime can pass a timedelta.
    datetime = sys.modules.get("datetime")
    if datetime is not None and isinstance(value, datetime.timedelta):
        micros: int = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        return micros // 1000 if micros % 1000 == 0 else micros / 1000
    return None


def _shown(value: object) -> str:
    """The value for an error's text; an int of thousands of digits has no text."""
    try:
        return repr(value)
    except ValueError:
        return "a number of very many digits"


def _seconds(ms: int) -> str:
    """Milliseconds as a decimal number of seconds."""
    whole, rest = divmod(ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


def milliseconds(field: str, value: object, least: int, most: int, *, extra: str = "") -> int:
    """Converts a duration to whole milliseconds, to the nearest one.

    Args:
        field: The name of the argument, for the error's text.
        value: Seconds (an int or a float) or a timedelta. A positive duration below one millisecond
            becomes one.
        least: The smallest allowed number of milliseconds.
        most: The largest.
        extra: What else is allowed, for the error's text.

    Raises:
        InvalidParam: It is negative, NaN, infinite or out of the range.
        InvalidType: It is a bool, a string or something else that is no duration.
    """
    exact = _exact_milliseconds(value)
    allowed = f"allowed: {_seconds(least)} to {_seconds(most)} seconds, as a number or a timedelta"
    if exact is None:
        raise InvalidType(f"{field} is a {type(value).__name__}; {allowed}{extra}")
    # Compared before rounding, so that nothing outside is rounded into the range. NaN fails too.
    smallest = 0 if least == 1 else least
    if not smallest <= exact <= most or (exact == 0 and least > 0):
        raise InvalidParam(f"{field} is {_shown(value)}; {allowed}{extra}")
    return max(1, round(exact)) if exact > 0 else 0


def timeout(value: object) -> int:
    """Converts the timeout of a claim; None means for ever."""
    if value is None:
        return FOR_EVER_MS
    if type(value) is float and MS <= value <= DAY_S:  # a short way to the same result
        exact = value * 1000
        whole = int(exact)
        return whole if whole == exact else round(exact)
    return milliseconds("timeout", value, 0, FOR_EVER_MS - 1, extra=", or None to wait for ever")


def delay(value: object) -> int:
    """Converts how long a job is to wait."""
    return milliseconds("delay", value, 0, DELAY_MAX_MS)


def count(field: str, value: object, least: int, most: int) -> int:
    """Checks a whole number.

    Raises:
        InvalidParam: It is out of the range.
        InvalidType: It is a bool, a float, a string or something else that is no whole number.
    """
    whole = _integer(value)
    if whole is None:
        raise InvalidType(
            f"{field} is a {type(value).__name__}; allowed: a whole number from {least} to {most}"
        )
    if not least <= whole <= most:
        raise InvalidParam(f"{field} is {_shown(whole)}; allowed: {least} to {most}")
    return whole


def batch_size(field: str, value: object) -> int:
    """Checks how many jobs a claim may bring."""
    if type(value) is int and 1 <= value <= BATCH_MAX:
        return value
    return count(field, value, 1, BATCH_MAX)


def percent(field: str, value: object) -> int:
    """Converts a share from 0 to 1 to whole percents; a positive one below one percent becomes one.

    Raises:
        InvalidParam: It is out of the range, or NaN.
        InvalidType: It is a bool, a string or something else that is no number.
    """
    share = value if isinstance(value, float) else _integer(value)
    if share is None:
        raise InvalidType(f"{field} is a {type(value).__name__}; allowed: a number from 0 to 1")
    if not 0 <= share <= 1:
        raise InvalidParam(f"{field} is {_shown(value)}; allowed: 0 to 1")
    return max(1, round(share * 100)) if share > 0 else 0


def flag(field: str, value: object) -> bool:
    """Checks a bool: a truthy text such as "no" would be an accident."""
    if not isinstance(value, bool):
        raise InvalidType(f"{field} is a {type(value).__name__}; allowed: True or False")
    return value


def one_of(field: str, value: object, known: Mapping[str, int]) -> int:
    """Looks a word up.

    Raises:
        InvalidParam: It is none of the known ones, which the text names.
        InvalidType: It is no str.
    """
    allowed = " or ".join(map(repr, known))
    if not isinstance(value, str):
        raise InvalidType(f"{field} is a {type(value).__name__}; allowed: {allowed}")
    if value not in known:
        raise InvalidParam(f"{field} is {value!r}; allowed: {allowed}")
    return known[value]


def headers(value: object) -> tuple[bytes, int]:
    """Encodes headers for C: name and value of each with a NUL behind it, and how many they are.

    Which names and values are allowed is checked there.

    Raises:
        InvalidParam: They are too many, or a text is none that text() takes.
        InvalidType: This is no mapping, or something in it is no str.
    """
    items = getattr(value, "items", None)
    if items is None:
        raise InvalidType(
            f"headers is a {type(value).__name__}; allowed: a mapping of str to str, or None"
        )
    texts: list[bytes] = []
    for name, content in items():
        texts.append(text("a name of headers", name))
        texts.append(text(f"headers[{name!r}]", content))
    if len(texts) > 2 * HEADERS_MAX:
        raise InvalidParam(f"headers has {len(texts) // 2} entries; allowed: up to {HEADERS_MAX}")
    return b"".join([encoded + b"\0" for encoded in texts]), len(texts) // 2


def kind(value: object) -> bytes | None:
    """Encodes the type of a job; "" means none."""
    return text("type", value) or None


def text(field: str, value: object) -> bytes:
    """Encodes a text for C; which characters and lengths are allowed is checked there.

    Raises:
        InvalidParam: It holds a NUL or half of a surrogate pair.
        InvalidType: It is no str.
    """
    if not isinstance(value, str):
        raise InvalidType(f"{field} is a {type(value).__name__}; allowed: a str")
    if "\0" in value:
        raise InvalidParam(
            f"{field} holds a NUL character; allowed: text without control characters"
        )
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidParam(f"{field} holds half of a surrogate pair; allowed: UTF-8 text") from None
