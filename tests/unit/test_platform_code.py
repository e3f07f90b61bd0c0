"""Code that depends on the system stands in csrc/platform, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: What ISO C11 has on every system. <time.h>, <errno.h> and <threads.h> are left out on purpose:
#: what they are used for differs.
STANDARD = {
    *("assert.h", "ctype.h", "inttypes.h", "limits.h", "stdarg.h", "stdatomic.h", "stdbool.h"),
    *("stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"),
}
#: The libraries that the backends are written for.
LIBRARIES = ("cwist/", "hiredis/", "nats/", "openssl/")

SYSTEM_MACRO = re.compile(
    r"\b(_WIN32|_WIN64|_MSC_VER|__MINGW32__|__APPLE__|__linux__|__unix__|__GLIBC__|_GNU_SOURCE)\b"
)
#: GNU C that MSVC does not take.
GNU_ISM = re.compile(r"__attribute__|__builtin_|\btypeof\b|(?<!\w)\(\{")
#: Words that Windows' headers define as macros.
WINDOWS_WORD = re.compile(r"\b(far|near|small|interface|hyper|min|max|ERROR|TEXT|IN|OUT)\b")


def common_code() -> list[Path]:
    """The C files that are the same on every system."""
    paths = [
        *(ROOT / "csrc").rglob("*.[ch]"),
        *(ROOT / "cwist_jq").glob("_*.[ch]"),
        *(ROOT / "include").rglob("*.h"),
        *(ROOT / "tests" / "c").rglob("*.[ch]"),
    ]
    made = {"_native.c"}
    # Tests that fork are built on POSIX only, and the harness has a file for each system.
    posix = {"ut_fork.c", "ct_processes.c", "ct_memory_forks.c", "ct_openssl.c"}
    posix |= {"system_unix.c", "system_win.c"}
    return [
        path
        for path in paths
        if ROOT / "csrc" / "platform" not in path.parents
        and ROOT / "cwist_jq" / "include" not in path.parents
        and path.name not in made | posix
    ]


def findings(text: str) -> list[str]:
    """What of a source belongs into csrc/platform."""
    found = [
        f"<{header}>"
        for header in re.findall(r"^\s*#\s*include\s*<([^>]+)>", text, re.MULTILINE)
        if header not in STANDARD and not header.startswith(LIBRARIES)
    ]
    code = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.DOTALL)
    for pattern in (SYSTEM_MACRO, GNU_ISM, WINDOWS_WORD):
        found += [match.group() for match in pattern.finditer(code)]
    return found


def test_common_code_knows_no_system() -> None:
    export = ROOT / "include" / "cwist" / "export.h"  # how a symbol is exported is its one idea
    seen = {
        str(path.relative_to(ROOT)): found
        for path in common_code()
        if path != export and (found := findings(path.read_text("utf-8")))
    }
    assert seen == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#include <unistd.h>\n", ["<unistd.h>"]),
        ("#  include <winsock2.h>\n", ["<winsock2.h>"]),
        ("#ifdef _WIN32\n#endif\n", ["_WIN32"]),
        ("static int x __attribute__((unused));\n", ["__attribute__"]),
        ("uint64_t far = 1;\n", ["far"]),
        ('/* as far as _WIN32 goes */ puts("far");\n#include <stdio.h>\n', []),
    ],
)
def test_the_check_sees(text: str, found: list[str]) -> None:
    assert findings(text) == found


def test_both_systems_have_every_part() -> None:
    listed = (ROOT / "csrc" / "sources.txt").read_text("utf-8")
    platform = ROOT / "csrc" / "platform"
    parts = {path.stem for path in platform.glob("*.h")} - {"compiler"}
    for system in ("unix", "win"):
        for part in parts:
            assert (platform / system / f"{part}.c").exists()
            assert f"platform/{system}/{part}.c\n" in listed
