"""The directive c-headers: the reference of the C library, from the comments of its headers.

What the comments mean is decided in one place, csrc/tools/gen_man.py, which makes the man pages.

    .. c-headers:: cwist/sys/job/durable_queue.h      the functions of a header
    .. c-headers:: structs                            all structs and callbacks
    .. c-headers:: codes                              all codes of errors
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(_ROOT / "csrc" / "tools"))

import gen_man  # noqa: E402 (found by the path above)

_MACROS = {"Fn": "``{}()``", "Xr": ":c:func:`{}`", "Dv": "``{}``", "Fa": "``{}``"}


@functools.cache
def _headers() -> Any:
    return gen_man.read(_ROOT / "include")


def _escaped(text: str) -> str:
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def _word(word: str, own: list[str]) -> str:
    opening, middle, calling, closing = gen_man.word_parts(word)
    macro = gen_man.marked(middle + calling, _headers().names(), own)
    if macro is None:
        return _escaped(word)
    kind, name = macro.split()[:2]
    # An empty escape ends the markup where a letter or a stop follows.
    return f"{opening}{_MACROS[kind].format(name)}\\ {closing}"


def _prose(text: str, own: list[str], indent: str = "   ") -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield indent + " ".join(_word(word, own) for word in paragraph.split())
        yield ""


def _declaration(kind: str, name: str) -> str:
    return f"{kind}{name}" if kind.endswith("*") else f"{kind} {name}"


def _function(page: Any) -> Iterator[str]:
    own = [function.name for function in page.functions]
    before = ".. c:function:: "
    for function in page.functions:
        parameters = ", ".join(function.parameters) or "void"
        yield f"{before}{_declaration(function.result, function.name)}({parameters})"
        before = " " * len(before)
    yield ""
    yield from _prose(page.prose, own)
    fields = dict(page.fields)
    errors = gen_man.errors_of(page, _headers())
    if "Returns" in fields:
        yield from _field("Returns", gen_man.capital(fields["Returns"]), own)
    if errors:
        yield from _field("Errors", "", own)
        for code, note in errors:
            said = "".join(_prose(f": {note}" if note else "", own, "")).rstrip()
            yield f"   * :c:macro:`{code}`{said}"
        yield ""
    yield from _field("Threads", gen_man.capital(fields["Threads"]), own)


def _field(name: str, text: str, own: list[str]) -> Iterator[str]:
    yield f"   **{name}:** {''.join(_prose(text, own, '')) if text else ''}".rstrip()
    yield ""


def _functions(header: str) -> Iterator[str]:
    for page in _headers().pages:
        if page.header == header:
            yield from _function(page)


def _structs(_: str) -> Iterator[str]:
    for name, (comment, members) in _headers().structs.items():
        yield f".. c:struct:: {name}"
        yield ""
        yield from _prose(comment, []) if comment else ()
        for kind, member, note in members:
            yield f"   .. c:member:: {_declaration(kind.strip(), member)}"
            yield ""
            yield from _prose(f"{gen_man.capital(note)}." if note else "", [], " " * 6)
    for name, (parameters, comment) in _headers().callbacks.items():
        yield f".. c:type:: void (*{name})({', '.join(parameters)})"
        yield ""
        yield from _prose(comment, [])


def _codes(_: str) -> Iterator[str]:
    for name, number, meaning in _headers().codes:
        yield f".. c:macro:: {name}"
        yield ""
        yield from _prose(f"{number}: {meaning}." if meaning else f"{number}.", [])


class CHeaders(SphinxDirective):
    """What is in the headers, as text that Sphinx reads."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Sphinx calls this."""
        what = self.arguments[0]
        write = {"structs": _structs, "codes": _codes}.get(what, _functions)
        lines = list(write(what))
        if not lines:
            raise self.error(f"no public header has {what}")
        self.env.note_dependency(str(_ROOT / "include"))
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, what), self.content_offset, parent)
        return parent.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("c-headers", CHeaders)
    return {"parallel_read_safe": True}
