"""docs/install.md names the packages that the builds name, and the files that a package holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cwist_jq

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/install.md").read_text("utf-8")
TABLE = (ROOT / "csrc/needs.txt").read_text("utf-8").splitlines()
NEEDS = [
    [field.strip() for field in line.split("|")]
    for line in TABLE
    if line and not line.startswith("#")
]
# CMake alone wants a Python; the last is the package that this page's builds make.
OTHERS = {"python3", "cwist-jq"}


@pytest.mark.parametrize(
    ("oldest", "packages"),
    [(oldest, packages) for name, oldest, *packages in NEEDS if name not in OTHERS],
)
def test_a_need(oldest: str, packages: list[str]) -> None:
    cells = [f"`{package}`" if package != "-" else "from its source" for package in packages]
    (row,) = [line for line in PAGE.splitlines() if " | ".join(cells) in line]
    assert oldest == "-" or f" {oldest} or newer " in row


def test_the_files_of_the_package() -> None:
    package = Path(cwist_jq.__file__).parent
    for name in re.findall(r"`cwist_jq/((?:lib|include)[\w./]*)`", PAGE):
        assert (package / name).exists(), name
