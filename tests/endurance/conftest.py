"""Each run ends with a line of numbers, shown when all have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.worker.helpers import Steps

_KEY = "endurance"


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    """Where handlers of the program write."""
    return Steps(tmp_path / "steps")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Notes numbers of a run: tell(jobs=500, kills=3)."""
    numbers: dict[str, object] = {}
    began = time.monotonic()
    yield numbers.update
    numbers["seconds"] = round(time.monotonic() - began, 1)
    text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in numbers.items())
    request.node.user_properties.append((_KEY, text))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows the numbers, those of failed runs too."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, text in getattr(report, "user_properties", []):
                if key == _KEY and report.when == "teardown":
                    name = report.nodeid.rpartition("::")[2]
                    terminalreporter.write_line(f"endurance: {name}: {text}")
