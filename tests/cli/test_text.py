from __future__ import annotations

import random
import re
import sys

import pytest

from cwist_jq.cli.text import of_bytes, printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, grün, 漢字", "plain, grün, 漢字"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("back\\slash", "back\\\\slash"),
        ("\x7f", "\\x7f"),
        ("\x9b31m", "\\u009b31m"),  # a control sequence in one character
        ("\u202eevil", "\\u202eevil"),  # turns the line around
        ("\u2028\ufeff", "\\u2028\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_bytes_are_utf8_where_they_can_be() -> None:
    assert of_bytes(b"gr\xc3\xbcn \xff\x00") == "grün \\xff\\x00"


_ESCAPE = re.compile(r"\\(?:x(..)|u(....)|U(........)|(.))")


def _read_back(shown: str) -> bytes:
    """Undoes of_bytes(); each character of the work stands for a byte."""

    def one(found: re.Match[str]) -> str:
        byte, short, long, letter = found.groups()
        if letter:
            return {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}[letter]
        if byte:
            return chr(int(byte, 16))
        return chr(int(short or long, 16)).encode().decode("latin-1")

    return _ESCAPE.sub(one, shown.encode().decode("latin-1")).encode("latin-1")


def test_any_bytes_are_printable_and_can_be_read_back() -> None:
    chance = random.Random(5)
    samples = [chance.randbytes(size) for size in range(200)]
    samples += [b"\\x41", "\u009b\u202e\\n\n".encode(), b"\xc3", bytes(range(256))]
    for data in samples:
        shown = of_bytes(data)
        assert shown.isprintable()
        assert _read_back(shown) == data


def test_every_character_is_made_printable() -> None:
    for number in range(sys.maxunicode + 1):
        assert printable(chr(number)).isprintable()


def test_a_long_text_is_cut() -> None:
    assert shortened("x" * 60, 60) == "x" * 60
    assert shortened("x" * 61, 60) == "x" * 57 + "..."
