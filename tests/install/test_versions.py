"""One version number, read everywhere."""

from __future__ import annotations

import re

import cwist_jq
from tests.servers import ROOT

from .conftest import Installed, Tree, output


def header() -> str:
    """The version where it is written."""
    text = (ROOT / "include" / "cwist" / "version.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"define CWIST_JQ_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def test_what_is_installed_says_the_same(tree: Tree) -> None:
    version = header()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert tree.pkg_config("--modversion") == version
    package = tree.lib / "cmake" / "cwist_jq" / "cwist_jq-config-version.cmake"
    assert f'set(PACKAGE_VERSION "{version}")' in package.read_text(encoding="utf-8")
    assert (tree.lib / "libcwist_jq.so").resolve().name == f"libcwist_jq.so.0.{version}"
    for page in (tree.prefix / "share" / "man").rglob("*.[37]"):
        text = page.read_text(encoding="utf-8")
        assert text.startswith(".so ") or f"\n.Os cwist_jq {version}\n" in text, page.name


def test_python_says_the_same(wheel: Installed) -> None:
    assert cwist_jq.__version__ == header()
    assert wheel.ask("cwist_jq.__version__") == header()
    assert wheel.config("--version") == header()
    assert output("sh", "-c", f"ls {ROOT}/dist/cwist_jq-{header()}-*.whl")


def test_the_changelog_is_not_behind() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    now = tuple(map(int, header().split(".")))
    released = [
        tuple(map(int, found))
        for found in re.findall(r"^## (\d+)\.(\d+)\.(\d+) - ", text, re.MULTILINE)
    ]
    assert all(version <= now for version in released)
    assert headings[0] == "Unreleased" or released[0] == now
