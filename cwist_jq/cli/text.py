r"""Texts and bytes of strangers, made fit for a terminal.

A payload, a type, a reason or a header may hold anything, also sequences that move the cursor or
change the keyboard. What is not printable is written as \n, \xNN, \uNNNN or \UNNNNNNNN, and a
backslash as \\, so that the original can be read back. Bytes that are no UTF-8 are written as \xNN.
"""

from __future__ import annotations

__all__ = ["of_bytes", "printable", "shortened"]

_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The text with all that is not printable escaped."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_escaped(character) for character in text)


def of_bytes(data: bytes) -> str:
    """Bytes as printable text."""
    return printable(data.decode("utf-8", "surrogateescape"))


def shortened(text: str, most: int) -> str:
    """A printable text cut to that many characters; an ellipsis says that it was."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    number = ord(character)
    if "\udc80" <= character <= "\udcff":  # a byte that was no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    if character < "\x80":
        return f"\\x{number:02x}"
    # U+0080 to U+00FF are not \xNN: that is a byte.
    return f"\\u{number:04x}" if character <= "\uffff" else f"\\U{number:08x}"
