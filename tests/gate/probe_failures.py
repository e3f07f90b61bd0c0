"""What test_run_python.py runs: tests that fail as PROBE says. Not collected by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _fail_once(name: str) -> None:
    seen = Path(os.environ["PROBE_FOLDER"]) / name
    if not seen.exists():
        seen.touch()
        pytest.fail("the first time")


@pytest.mark.parametrize("where", ["beside others", "a::b"])
def test_beside_others(where: str) -> None:
    how = os.environ["PROBE"]
    if how == "once":
        _fail_once(where[0])
    elif how == "always":
        pytest.fail("always")
    elif how == "skip":
        pytest.skip("some reason")
    elif how == "crash":
        os.abort()


@pytest.mark.quiet
def test_quiet() -> None:
    if os.environ["PROBE"] == "once":
        _fail_once("quiet")


@pytest.mark.parametrize("number", range(30))
def test_many(number: int) -> None:
    if os.environ["PROBE"] == "many":
        _fail_once(str(number))


if os.environ["PROBE"] == "broken":
    raise RuntimeError("cannot be collected")
