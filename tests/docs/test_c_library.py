"""The examples in docs/c-library.md, beside a Python program on the same queue."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import cwist_jq
from tests.observers import Observer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/c-library.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "build" / "c"

MAIN = """
int main(int argc, char **argv)
{
    cwist_job_conn_t *conn = NULL;
    cwist_job_queue_t *queue = NULL;
    cwist_job_queue_opts_t opts = {.name = argv[argc - 1]};
    cwist_job_conn_open(&conn, argv[2], NULL);
    cwist_job_queue_open(&queue, conn, &opts);
    CALL
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    return (int)cwist_job_live_handles();
}
"""


def compiled(heading: str, calls: dict[str, str], folder: Path) -> Path:
    """Makes a program of the example under a heading; its first argument says what it calls."""
    (text,) = re.findall(rf"\n## {heading}\n.*?```c\n(.*?)```", PAGE, re.DOTALL)
    choice = " ".join(
        f'if (argv[1][0] == "{name}"[0]) {{ {call}; }}' for name, call in calls.items()
    )
    source = folder / "example.c"
    source.write_text(text.replace("5000", "500") + MAIN.replace("CALL", choice), encoding="utf-8")
    program = folder / "example"
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", f"-L{LIBRARY}", "-lcwist_jq"]
    subprocess.run(
        ["cc", str(source), *flags, f"-Wl,-rpath,{LIBRARY}", "-o", str(program)], check=True
    )
    return program


def runner(program: Path, url: str, queue_name: str) -> Callable[[str], list[str]]:
    """Runs one call of an example on a queue; what it prints, in lines."""

    def run(function: str) -> list[str]:
        command = [str(program), function, url, queue_name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert "ack:" not in done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture
def example(url: str, queue_name: str, tmp_path: Path) -> Callable[[str], list[str]]:
    """The example of batches."""
    calls = {"store": "store(queue)", "work": "work(queue)"}
    return runner(compiled("Batches", calls, tmp_path), url, queue_name)


def test_what_c_stores_python_claims(
    example: Callable[[str], list[str]],
    queue: cwist_jq.Queue,
    observer: Observer,
    queue_name: str,
) -> None:
    lines = example("store")
    jobs = queue.claim_many(10, timeout=5)
    assert [(job.payload, job.type) for job in jobs] == [(b"one", "word"), (b"two", "word")]
    assert lines == [f"{at}: CWIST_SUCCESS {job.id}" for at, job in enumerate(jobs)]
    queue.ack_many(jobs)
    assert observer.leftovers(queue_name) == []


def test_what_python_stores_c_claims(
    example: Callable[[str], list[str]],
    queue: cwist_jq.Queue,
    observer: Observer,
    queue_name: str,
) -> None:
    queue.enqueue_many([b"%d" % number for number in range(250)], type="ü")
    assert example("work") == [str(number) for number in range(250)]
    assert observer.leftovers(queue_name) == []


def test_looking_after_a_queue(
    url: str, queue: cwist_jq.Queue, queue_name: str, tmp_path: Path
) -> None:
    call = {"look": "look_after(conn, argv[3])"}
    run = runner(compiled("Looking after a queue", call, tmp_path), url, queue_name)
    queue.enqueue_many([b"one", b"two"])
    assert run("look") == [
        "20000 ms left",
        "1 ready, 1 claimed, 0 dead",
        "2 purged",
        "0 ready, 0 claimed, 0 dead, paused",
    ]
    assert not queue.stats().paused


def test_everyday_use(url: str, queue: cwist_jq.Queue, queue_name: str, tmp_path: Path) -> None:
    calls = {"promise": 'promise(queue, "call home")', "keep": "keep_promise(queue)"}
    program = compiled("Everyday use", {**calls, "mend": "mend(queue)"}, tmp_path)
    run = runner(program, url, queue_name)
    assert run("promise") == ["promised"]
    assert run("promise") == ["promised already"]
    assert run("keep") == ["reminding tenant 7"]
    assert run("mend") == ["reminder: rejected (no such tenant)"]
    job = queue.claim(5.0)
    assert job is not None
    assert (job.payload, job.attempts, job.headers["Tenant"]) == (b"call home", 1, "7")
    job.ack()
