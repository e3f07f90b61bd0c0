"""The project of docs/fastapi.md runs as it stands there: its own tests, and beside a server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.observers import Observer
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fastapi.md").read_text(encoding="utf-8")

#: Posts an order twice, and one whose trace is too long for a header of a job.
POST = """
from app import app
from fastapi.testclient import TestClient
with TestClient(app) as client:
    for number, trace in [(7, "00-1"), (7, "00-2"), (8, "x" * 5000)]:
        order = {"number": number, "article": "lamp"}
        answer = client.post("/orders", json=order, headers={"traceparent": trace})
        print(answer.status_code)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page, in a folder."""
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name is not None
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
    return tmp_path


def run(project: Path, *words: str, url: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "CWIST_JQ_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests(project: Path) -> None:
    assert "1 passed" in run(project, "-W", "error", "-m", "pytest", "-q", url="")


@contextmanager
def working(project: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    """The worker of the page, in a process; it is killed in the end."""
    worker = subprocess.Popen(
        [sys.executable, "work.py"],
        cwd=project,
        env={**os.environ, "CWIST_JQ_URL": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        try:
            yield worker
        finally:
            worker.kill()


@pytest.mark.engine("redis")
def test_the_application_and_the_worker(
    project: Path, own_server: Any, make_observer: Callable[[str, str], Observer]
) -> None:
    """A header from outside that no job can have is the client's error, and nothing is stored."""
    url = own_server.url
    observer = make_observer("redis", url)
    assert run(project, "-c", POST, url=url).split() == ["202", "200", "422"]
    with working(project, url) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ship lamp 00-1\n"
        eventually(lambda: observer.ready_and_claimed("orders") == 0)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
