"""manage.py cwist_jq_worker, as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

import cwist_jq
from tests import servers
from tests.contrib.on_django import tasks
from tests.waiting import PATIENCE, eventually

COMMAND = [sys.executable, "-m", "django", "cwist_jq_worker"]


@pytest.mark.engine("redis")
@pytest.mark.parametrize("options", [[], ["--processes", "1"]])
def test_the_command(make_server: Any, use: Any, tmp_path: Path, options: list[str]) -> None:
    """Two queues by weight; SIGTERM ends it with 0, and nothing is left."""
    url = make_server().url
    use(url)
    log = tmp_path / "log"
    for word in ("one", "two"):
        tasks.write.enqueue(str(log), word)
    tasks.write.using(queue_name="emails").enqueue(str(log), "three")
    tasks.reject.enqueue()
    worker = subprocess.Popen(
        [*COMMAND, "default=3", "emails=1", "--concurrency", "1", *options],
        cwd=servers.ROOT,
        env={**os.environ, "CWIST_JQ_URL": url},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with cwist_jq.connect(url) as conn:
            queues = [conn.queue("default"), conn.queue("emails")]
            eventually(
                lambda: all(one.stats().ready + one.stats().claimed == 0 for one in queues), 30
            )
            assert [letter.reason for letter in queues[0].dead] == ["never"]
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=PATIENCE)
    finally:
        worker.kill()
    assert worker.returncode == 0, said
    assert "works on default, emails" in said
    lines = [line.split() for line in log.read_text("utf-8").splitlines()]
    assert sorted(word for word, _ in lines) == ["one", "three", "two"]
    assert {int(number) == worker.pid for _, number in lines} == {not options}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["other"], "queue other is none of backend"),
        (["default=2", "emails"], "emails has no weight"),
        (["default=x"], "default=x has no weight"),
        (["--backend", "none"], "none"),
        (["--concurrency", "0"], "concurrency"),
    ],
)
def test_wrong_words(store: str, words: list[str], text: str) -> None:
    with pytest.raises(CommandError, match=text):
        call_command("cwist_jq_worker", *words)


def test_a_url_that_is_none(use: Any) -> None:
    use("http://127.0.0.1")
    with pytest.raises(CommandError, match="url"):
        call_command("cwist_jq_worker")
