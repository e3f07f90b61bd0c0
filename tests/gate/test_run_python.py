"""The runner of the Python tests runs again what a busy machine may have made fail, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers

_PROBE = "tests/gate/probe_failures.py"


def _run(tmp_path: Path, probe: str, strict: str = "1", *more: str) -> tuple[int, list[str]]:
    """Runs the probe; the exit code and the runner's own lines."""
    workers = "1" if probe == "crash" else "0"  # 0: in pytest's own process, which starts sooner
    done = subprocess.run(
        [sys.executable, "-m", "tests.run_python", "--workers", workers, *more, _PROBE],
        cwd=servers.ROOT,
        env={
            **os.environ,
            servers.STRICT_VARIABLE: strict,
            "PROBE": probe,
            "PROBE_FOLDER": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    print(done.stdout)
    lines = [line for line in done.stdout.splitlines() if line.startswith("test: ")]
    return done.returncode, lines[1:]


@pytest.mark.parametrize(("probe", "strict"), [("", "1"), ("skip", "0")], ids=["passes", "skip"])
def test_what_passes_is_not_run_again(tmp_path: Path, probe: str, strict: str) -> None:
    assert _run(tmp_path, probe, strict) == (0, [])


def test_what_fails_once_is_named_and_passes(tmp_path: Path) -> None:
    code, lines = _run(tmp_path, "once")
    assert code == 0
    assert lines[0] == "test: RUN AGAIN, ALONE: 3 that failed"
    passed = [line for line in lines if line.startswith(f"test: PASSED ONLY ALONE: {_PROBE}::")]
    assert len(passed) == 3
    assert len(lines) == 1 + 2 * 3


def test_a_run_without_tests_fails(tmp_path: Path) -> None:
    assert _run(tmp_path, "", "1", "-k", "no_test_has_this_name") == (1, [])


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    code, lines = _run(tmp_path, "always")
    assert code == 1
    assert sum("FAILED TWICE" in line for line in lines) == 2
    assert not any("PASSED" in line for line in lines)


@pytest.mark.parametrize("probe", ["skip", "crash", "broken", "many"])
def test_what_the_load_does_not_explain_fails_at_once(tmp_path: Path, probe: str) -> None:
    assert _run(tmp_path, probe) == (1, [])
