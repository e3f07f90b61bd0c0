"""The check of the export list sees what is missing and what is too much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers

_CHECK = servers.ROOT / "csrc" / "tools" / "check_exports.py"
_LIST = servers.ROOT / "csrc" / "exports.txt"


def _check(tmp_path: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    source, library = tmp_path / "x.c", tmp_path / "libx.so"
    source.write_text("".join(f"void {name}(void);\nvoid {name}(void) {{}}\n" for name in names))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    return subprocess.run(
        [sys.executable, _CHECK, library], capture_output=True, text=True, check=False
    )


@pytest.fixture
def promised() -> list[str]:
    """The names in exports.txt."""
    return [line for line in _LIST.read_text().splitlines() if line.startswith("cwist_")]


def test_the_same_names(tmp_path: Path, promised: list[str]) -> None:
    assert _check(tmp_path, promised).returncode == 0


def test_a_missing_name(tmp_path: Path, promised: list[str]) -> None:
    done = _check(tmp_path, promised[1:])
    assert done.returncode == 1
    assert f"promised but not exported: {promised[0]}" in done.stderr


def test_a_name_too_many(tmp_path: Path, promised: list[str]) -> None:
    done = _check(tmp_path, [*promised, "cwist_jq__private"])
    assert done.returncode == 1
    assert "exported but not in exports.txt: cwist_jq__private" in done.stderr
