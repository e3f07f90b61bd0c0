"""What the tests of the worker share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.helpers import Steps


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    """Where handlers of the program write."""
    return Steps(tmp_path / "steps")
