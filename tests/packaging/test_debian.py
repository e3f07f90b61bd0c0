"""What the Debian packaging has to say a second time agrees with the first."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "packaging" / "debian"


def version() -> str:
    header = (ROOT / "include/cwist/version.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"define CWIST_JQ_VERSION_\w+ (\d+)", header))


def test_the_newest_entry_of_the_changelog_is_for_this_version() -> None:
    first = (DEBIAN / "changelog").read_text(encoding="utf-8").splitlines()[0]
    found = re.fullmatch(r"cwist-jq \((.+)-\d+\) \w+; urgency=\w+", first)
    assert found is not None
    assert found[1] == version()


def test_the_symbols_are_those_that_the_library_exports() -> None:
    exports = (ROOT / "csrc/exports.txt").read_text(encoding="utf-8")
    symbols = (DEBIAN / "libcwist-jq0.symbols").read_text(encoding="utf-8")
    listed = re.findall(r"^ (\w+)@Base [\d.]+$", symbols, re.MULTILINE)
    assert sorted(listed) == sorted(re.findall(r"^cwist_\w+", exports, re.MULTILINE))
    assert len(listed) == len(symbols.splitlines()) - 2
