"""The examples of docs/worker.md run as they stand there, but for the address of the server."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.observers import Observer
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "worker.md").read_text(encoding="utf-8")
ADDRESS = "redis://127.0.0.1:6379"
SEND = "def send(to):\n    print(to, flush=True)\n    return True\n"


def test_the_examples(url: str, tmp_path: Path, observer: Observer) -> None:
    worker, producer, middleware = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert ADDRESS in worker
    program = tmp_path / "tasks.py"
    program.write_text(SEND + worker.replace(ADDRESS, url), encoding="utf-8")
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as running:
        try:
            subprocess.run(
                [sys.executable, "-c", producer.replace(ADDRESS, url)], check=True, timeout=PATIENCE
            )
            assert running.stdout is not None
            assert running.stdout.readline() == "a@b.co\n"
            eventually(lambda: observer.ready_and_claimed("emails") == 0)
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()
    exec(middleware, {"url": url})  # it opens nothing
