"""The project of docs/django.md runs as it stands there, but for the address of the server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import django
import pytest

from tests.observers import Observer
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "django.md").read_text(encoding="utf-8")
ADDRESS = "redis://127.0.0.1:6379"

#: What a project has before, and where the mails go.
SETTINGS = """
SECRET_KEY = "of the test"
USE_TZ = True
INSTALLED_APPS = []
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "data.sqlite3"}}
"""
SEND = """
def send(address):
    print("mail to", address, flush=True)
    return True
"""
ENQUEUE = """
import django
django.setup()
import views, tasks
views.sign_up("a@b.co")
views.sign_up("nobody")
views.next_year(2027)
views.next_year(2027)
tasks.report.enqueue(2026)
"""


@pytest.fixture
def url(own_server: Any) -> str:
    """A server of its own: the queues have names that other pages use."""
    where: str = own_server.url
    return where


@pytest.fixture
def project(tmp_path: Path, url: str) -> Path:
    """The files of the page, in a folder."""
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name is not None
        before = {"settings.py": SETTINGS, "tasks.py": SEND}.get(name[1], "")
        (tmp_path / name[1]).write_text(before + block.replace(ADDRESS, url), encoding="utf-8")
    if django.VERSION < (6, 0):  # as the page says
        tasks = tmp_path / "tasks.py"
        tasks.write_text(tasks.read_text("utf-8").replace("django.tasks", "django_tasks"), "utf-8")
        with (tmp_path / "settings.py").open("a", encoding="utf-8") as settings:
            settings.write('INSTALLED_APPS += ["django_tasks"]\n')
    return tmp_path


def run(project: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.engine("redis")
def test_the_project(project: Path, observer: Observer) -> None:
    """A mail, a dead letter, a report now, and one tomorrow, which was asked for twice."""

    def done() -> bool:
        return not any(observer.ready_and_claimed(name) for name in ("default", "emails"))

    with run(project, "-c", ENQUEUE) as producer:
        assert producer.wait(60) == 0
    with run(project, "work.py") as worker:
        try:
            eventually(done, 30)
            worker.terminate()
            said, _ = worker.communicate(timeout=30)
        finally:
            worker.kill()
    assert worker.returncode == 0
    assert sorted(said.splitlines()) == ["1 2026", "mail to a@b.co"]
    assert observer.delayed("default") == 1
    assert [letter.reason for letter in observer.dead("emails")] == ["no address"]
