"""Runs the Python tests. What failed is run once more, alone: a busy machine breaks time limits.

    python -m tests.run_python [--workers N] [--api aio] [PYTEST-ARGUMENT…]

First N tests run at once, then those that are marked `quiet`, at most two at a time. A test that
fails is named and run again when the others are done; it fails the run when it fails again. What
the load of a machine does not explain is never run again: a skip in strict mode, a crash, an error
while tests are collected, and failures in great number.

The module is a plugin of pytest too, which notes the failures of a run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import servers

if TYPE_CHECKING:
    import pytest

#: Names the file into which a run of pytest writes what failed.
_VARIABLE = "CWIST_TEST_FAILURES"
#: What pytest says when no test was chosen.
_NONE = 5
#: More failures than this in the two runs together have another cause than the load.
_MOST = 20

# ---- the plugin ----

#: What failed in this run of pytest: the test, and whether running it again is of use.
_failed: dict[str, bool] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes a failed test. The report of a worker that crashed belongs to no phase of a test."""
    if report.failed:
        useful = report.when in ("setup", "call", "teardown") and not hasattr(report, "gate")
        _failed[report.nodeid] = _failed.get(report.nodeid, True) and useful


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes what could not be collected."""
    if report.failed:
        _failed[report.nodeid] = False


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the notes; of several processes the one that has the reports of all does it."""
    file = os.environ.get(_VARIABLE)
    if file and not hasattr(session.config, "workerinput"):
        Path(file).write_text(json.dumps(_failed))


# ---- the program ----


def _say(text: str) -> None:
    print(f"test: {text}", flush=True)


def _pytest(arguments: Sequence[str]) -> tuple[int, dict[str, bool]]:
    """Runs pytest; its exit code and what failed."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.run_python", "-q", "--timeout", "300"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "failures.json"
        code = subprocess.run(
            [*command, *arguments],
            cwd=servers.ROOT,
            env={**os.environ, _VARIABLE: str(file)},
            check=False,
        ).returncode
        return code, json.loads(file.read_text()) if file.exists() else {}


def _again(failed: Sequence[str], how: Sequence[str]) -> bool:
    """Runs the tests again, one at a time; true when all pass now."""
    _say(f"RUN AGAIN, ALONE: {len(failed)} that failed")
    for name in failed:
        _say(f"  {name}")
    code, still = _pytest([*how, *failed])
    for name in failed:
        _say(f"{'FAILED TWICE' if name in still else 'PASSED ONLY ALONE'}: {name}")
    return code == 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.run_python", description=__doc__)
    parser.add_argument("--workers", type=int, default=4, help="how many tests at once")
    parser.add_argument("--api", help="what the conformance tests run through")
    options, arguments = parser.parse_known_args()
    how = [] if options.api is None else ["--api", options.api]
    failed: dict[str, bool] = {}
    good = True
    codes = []
    _say(f"pytest, {options.workers} tests at once, then those that need a quiet machine")
    for workers, which in ((options.workers, "not quiet"), (min(options.workers, 2), "quiet")):
        code, now = _pytest(["-n", str(workers), "-m", which, *how, *arguments])
        # A 1 says that tests failed, and then there are such.
        good = good and (code in (0, _NONE) or (code == 1 and bool(now)))
        codes.append(code)
        failed.update(now)
    if not good or set(codes) == {_NONE} or not all(failed.values()) or len(failed) > _MOST:
        return 1
    return 0 if not failed or _again(list(failed), how) else 1


if __name__ == "__main__":
    sys.exit(main())
