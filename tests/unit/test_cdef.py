"""The declarations that are derived from the public headers."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import cffi
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "csrc" / "tools" / "gen_cdef.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(TOOL))


def test_every_exported_function_is_declared_once(tool: dict[str, Any]) -> None:
    text = tool["cdef"](ROOT / "include")
    exports = [
        line
        for line in (ROOT / "csrc" / "exports.txt").read_text("utf-8").splitlines()
        if line.startswith("cwist_")
    ]
    assert exports
    for name in exports:
        assert len(re.findall(rf"\b{name}\(", text)) == 1, name


def test_nothing_but_declarations_is_left(tool: dict[str, Any]) -> None:
    text = tool["cdef"](ROOT / "include")
    for word in ("CWIST_API", "#", "/*", "*/", "inline", "extern", "__attribute__"):
        assert word not in text


def test_the_parser_of_cffi_takes_it_with_our_additions(tool: dict[str, Any]) -> None:
    extra = (ROOT / "cwist_jq" / "_cdef_extra.h").read_text("utf-8")
    cffi.FFI().cdef(tool["cdef"](ROOT / "include") + extra)


def test_headers_come_after_those_they_need(tool: dict[str, Any]) -> None:
    order = tool["headers"](ROOT / "include")
    assert len(order) == len(set(order))
    assert order.index("cwist/sys/err/cwist_err.h") < order.index("cwist/sys/job/durable_queue.h")
    assert order[-1] == "cwist/sys/job/durable_queue_ext.h"
    public = {str(path.relative_to(ROOT / "include")) for path in (ROOT / "include").rglob("*.h")}
    assert public - set(order) == {"cwist/version.h"}


def test_region(tool: dict[str, Any]) -> None:
    text = (
        "int hidden(void);\n/* cdef: begin */\n/* words;\n more */\n\n\nCWIST_API int\n"
        "f(int a); /* a */\n\nCWIST_API void g(void);\n/* cdef: end */\nint h(void);\n"
    )
    assert tool["region"](text, "a.h") == "int\nf(int a);\nvoid g(void);\n"
    assert tool["region"]("int f(void);\n", "a.h") == ""


@pytest.mark.parametrize(
    "text",
    [
        "/* cdef: begin */\nint f(void);\n",
        "int f(void);\n/* cdef: end */\n",
        "/* cdef: end */\nint f(void);\n/* cdef: begin */\n",
        "/* cdef: begin */\n/* cdef: begin */\n/* cdef: end */\n",
        "/* cdef: begin */\n#define X 1\n/* cdef: end */\n",
    ],
)
def test_a_broken_region_is_refused_by_name(tool: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=r"^broken\.h: "):
        tool["region"](text, "broken.h")


def test_from_the_command_line(tool: dict[str, Any], tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, TOOL], check=True, capture_output=True, text=True)
    assert done.stdout == tool["cdef"](ROOT / "include")
    failed = subprocess.run(
        [sys.executable, TOOL, tmp_path], check=False, capture_output=True, text=True
    )
    assert failed.returncode == 1
    assert failed.stderr.startswith("gen_cdef: ")
    assert failed.stderr.count("\n") == 1
