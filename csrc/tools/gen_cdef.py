"""Derives the declarations of the Python binding from the public headers.

Each public header marks its plain declarations with two comments, `cdef: begin` and `cdef: end`.
The regions are put together in the order in which the headers include each other, without comments
and without the export macro, so that the binding never repeats a declaration by hand.

    python3 csrc/tools/gen_cdef.py [INCLUDE_DIR]        prints the result
"""

import re
import sys
from pathlib import Path

BEGIN = "/* cdef: begin */"
END = "/* cdef: end */"
ROOT_HEADER = "cwist/sys/job/durable_queue_ext.h"

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_EXPORT = re.compile(r"\bCWIST_API\s+")
_INCLUDE = re.compile(r"^#include <(cwist/[^>]+)>", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n+")


class HeaderError(Exception):
    """A header whose marked region cannot be used."""


def region(text, name):
    """Returns the marked region of a header's text, "" when it has none.

    Args:
        text: The header.
        name: Its name, for error texts.

    Raises:
        HeaderError: The marks do not come as one pair, or a directive is between them.
    """
    counts = text.count(BEGIN), text.count(END)
    if counts == (0, 0):
        return ""
    begin, end = text.find(BEGIN), text.find(END)
    if counts != (1, 1) or begin > end:
        raise HeaderError(f"{name}: needs one {BEGIN} and behind it one {END}")
    plain = _EXPORT.sub("", _COMMENT.sub("", text[begin + len(BEGIN) : end]))
    if re.search(r"^\s*#", plain, re.MULTILINE):
        raise HeaderError(f"{name}: a preprocessor directive is inside the marked region")
    return _BLANK_LINES.sub("\n", "\n".join(map(str.rstrip, plain.splitlines()))).strip() + "\n"


def headers(include_dir, name=ROOT_HEADER, seen=None):
    """Lists a header and all of ours that it includes, each after those it needs."""
    seen = [] if seen is None else seen
    text = (Path(include_dir) / name).read_text(encoding="utf-8")
    for included in _INCLUDE.findall(text):
        if included not in seen:
            headers(include_dir, included, seen)
    if name not in seen:
        seen.append(name)
    return seen


def cdef(include_dir):
    """Returns the declarations of all public headers below include_dir."""
    parts = []
    for name in headers(include_dir):
        text = (Path(include_dir) / name).read_text(encoding="utf-8")
        parts.append(region(text, name))
    return "\n".join(part for part in parts if part)


def main(arguments):
    """Prints the declarations; returns the exit code."""
    default = Path(__file__).resolve().parents[2] / "include"
    include_dir = Path(arguments[0]) if arguments else default
    try:
        sys.stdout.write(cdef(include_dir))
    except (HeaderError, OSError) as error:
        sys.stderr.write(f"gen_cdef: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
