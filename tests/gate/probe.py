"""What test_gate.py runs in a second pytest: one look at every backend. Not collected by itself."""

from __future__ import annotations

import os

import pytest

from tests.observers import Observer


def test_backend(observer: Observer, queue_name: str) -> None:
    observer.put(queue_name, b"x")
    assert observer.ready_and_claimed(queue_name) == 1


@pytest.mark.skipif(os.environ.get("PROBE") != "skip", reason="only for the gate's own tests")
def test_skipped_for_another_reason() -> None:
    pytest.skip("some other reason")


def test_expected_failure() -> None:
    if os.environ.get("PROBE") == "xfail":
        pytest.xfail("known")
