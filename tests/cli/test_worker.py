"""cwist-jq worker. What a worker does is tested in tests/worker; here it is found and ended."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq.cli import exits
from tests.cli.program import Program
from tests.waiting import PATIENCE, eventually

_MODULE = """
import os
from cwist_jq.worker import Worker

worker = Worker(None, [os.environ["QUEUE"]])

class Shop:
    @staticmethod
    def make():
        return worker

@worker.handler
def work(data, job):
    print(job.id, data, flush=True)

nothing = 5
if os.environ.get("BROKEN"):
    import no_such_module_anywhere
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the module is."""
    (tmp_path / "shop_of_test.py").write_text(_MODULE)
    return tmp_path


@pytest.mark.parametrize("target", ["shop_of_test:worker", "shop_of_test:Shop.make"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_works_until_it_is_told_to_end(
    url: str, queue: cwist_jq.Queue, folder: Path, target: str, how: signal.Signals
) -> None:
    name = queue.enqueue(b'"hello"', type="t")
    running = Program(None, QUEUE=queue.name).start(
        "worker", target, "--url", url, cwd=folder, stderr=-1
    )
    assert running.stdout is not None
    try:
        assert running.stdout.readline().decode() == f"{name} hello\n"
        eventually(lambda: queue.stats().claimed == 0)
        running.send_signal(how)
        _, err = running.communicate(timeout=2 * PATIENCE)
        assert running.returncode == exits.DONE
        assert "Traceback" not in err.decode()
    finally:
        running.kill()
        running.communicate()


def test_a_type_of_a_stranger_does_not_reach_the_terminal(
    url: str, queue: cwist_jq.Queue, folder: Path
) -> None:
    queue.enqueue(b"not JSON \x1b[31m", type="bad\u202etype")
    running = Program(url, QUEUE=queue.name).start(
        "worker", "shop_of_test:worker", "--app-dir", str(folder), stderr=-1
    )
    assert running.stderr is not None
    seen = b""
    try:
        while b"type" not in seen:
            line = running.stderr.readline()
            assert line, seen
            seen += line
    finally:
        running.kill()
        running.communicate()
    assert "\u202e".encode() not in seen
    assert b"\x1b" not in seen


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("shop_of_test", "no MODULE:ATTRIBUTE"),
        (":worker", "no MODULE:ATTRIBUTE"),
        ("no_such_module:worker", "there is no module no_such_module"),
        ("shop_of_test.sub:worker", "there is no module shop_of_test"),
        ("shop_of_test:absent", "there is no absent"),
        ("shop_of_test:nothing", "is a int, not a cwist_jq Worker"),
    ],
)
def test_a_wrong_target(folder: Path, target: str, words: str) -> None:
    done = Program("redis://127.0.0.1:1", QUEUE="q")("worker", target, cwd=folder)
    assert done.code == exits.USAGE
    assert words in done.err


def test_an_error_inside_the_module_shows_its_traceback(folder: Path) -> None:
    program = Program("redis://127.0.0.1:1", QUEUE="q", BROKEN="1")
    done = program("worker", "shop_of_test:worker", cwd=folder)
    assert done.code == exits.FAILED
    assert "no_such_module_anywhere" in done.err
    assert "Traceback" in done.err
