"""Handlers in child processes: what kills one harms one job only."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import cwist_jq
from cwist_jq.worker import RemoteJob, Worker, enqueue_json
from tests.conformance.helpers import MakeQueue, only_letter
from tests.observers import Observer
from tests.waiting import eventually
from tests.worker.helpers import Steps, data, is_done, pairs, process, running


def test_a_crash_harms_one_job(
    url: str, queue: cwist_jq.Queue, observer: Observer, steps: Steps
) -> None:
    """X01, X02: the others are done, each once; the crash is tried again, and then is dead."""
    ids = []
    for number in range(60):
        kind = "segfault" if number == 30 else "sleep"
        ids.append(enqueue_json(queue, data(steps, seconds=0.01), type=kind))
    options = {"queue_options": {"max_retries": 2}}
    with process(url, queue.name, processes=2, **options) as worker:
        eventually(is_done(observer, queue.name), timeout=30)
        assert worker.says("ended: signal SIGSEGV")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
    bad = ids.pop(30)
    assert sorted(steps.of("end")) == pairs(ids)
    assert sorted(step for step in steps.of("begin") if step[0] == bad) == [(bad, 1), (bad, 2)]
    letter = only_letter(observer, queue.name)
    assert (letter.id, letter.cause, letter.attempts) == (bad, "nacked", 2)
    assert letter.reason == "the process that ran the handler ended: signal SIGSEGV"


@pytest.mark.slow
def test_a_crash_loop_without_children(
    url: str, make_queue: MakeQueue, observer: Observer, steps: Steps
) -> None:
    """X01, X07: a worker under a restart loop, a handler that segfaults on one payload of 200."""
    options = {"visibility_timeout": 0.5, "max_retries": 3}
    queue = make_queue(**options)
    ids = []
    for number in range(200):
        kind = "segfault" if number == 100 else "sleep"
        ids.append(enqueue_json(queue, data(steps), type=kind))
    crashes = 0
    for _ in range(6):
        with process(url, queue.name, concurrency=1, queue_options=options) as worker:
            worker.works()
            eventually(lambda: is_done(observer, queue.name)() or worker.popen.poll())
            if worker.popen.poll() is None:
                break
            assert worker.wait() == -signal.SIGSEGV, worker.log
            crashes += 1
    assert crashes == 3
    bad = ids.pop(100)
    assert {job_id for job_id, _ in steps.of("end")} == set(ids)
    letter = only_letter(observer, queue.name)
    assert (letter.id, letter.cause, letter.attempts) == (bad, "lease-expired", 3)


def test_a_child_that_is_killed_is_replaced(
    url: str, queue: cwist_jq.Queue, observer: Observer, steps: Steps
) -> None:
    """As by the kernel when memory is short."""
    with process(url, queue.name, processes=1):
        first = enqueue_json(queue, data(steps, seconds=60), type="sleep")
        eventually(lambda: steps.count("begin") == 1)
        os.kill(steps.all()[0][3], signal.SIGKILL)
        eventually(lambda: steps.count("begin") == 2)
        assert steps.of("begin") == [(first, 1), (first, 2)]


def test_an_idle_child_that_is_killed_harms_no_job(
    url: str, queue: cwist_jq.Queue, observer: Observer, steps: Steps
) -> None:
    with process(url, queue.name, processes=1):
        ids = []
        for number in range(4):
            ids.append(enqueue_json(queue, data(steps), type="sleep"))
            eventually(lambda: steps.count("end") == number + 1)  # noqa: B023 (called at once)
            eventually(is_done(observer, queue.name))
            os.kill(steps.all()[-1][3], signal.SIGKILL)
    assert steps.of("end") == [(job_id, 1) for job_id in ids]


def test_a_handler_that_leaves_has_failed(
    url: str, queue: cwist_jq.Queue, observer: Observer, steps: Steps
) -> None:
    """sys.exit() in a handler ends no process."""
    options = {"queue_options": {"max_retries": 2}}
    with process(url, queue.name, processes=1, **options):
        enqueue_json(queue, data(steps), type="exit")
        enqueue_json(queue, data(steps), type="fail")
        eventually(lambda: len(observer.dead(queue.name)) == 2)
    reasons = {letter.reason for letter in observer.dead(queue.name)}
    assert reasons == {"SystemExit: this handler wanted to leave", "ValueError: this handler fails"}
    assert len({process_id for *_, process_id in steps.all()}) == 1


def test_the_traceback_of_a_child_is_logged(url: str, queue: cwist_jq.Queue, steps: Steps) -> None:
    with process(url, queue.name, processes=1) as worker:
        enqueue_json(queue, data(steps), type="fail")
        eventually(lambda: worker.says("in fail"))
        assert worker.says("failed: ValueError: this handler fails")


def test_children_leave_ctrl_c_to_their_parent(
    url: str, queue: cwist_jq.Queue, observer: Observer, steps: Steps
) -> None:
    """A terminal sends it to all of them."""
    with process(url, queue.name, processes=1) as worker:
        job_id = enqueue_json(queue, data(steps, seconds=0.5), type="sleep")
        eventually(lambda: steps.count("begin") == 1)
        os.kill(steps.all()[0][3], signal.SIGINT)
        os.kill(steps.all()[0][3], signal.SIGTERM)
        worker.signal(signal.SIGINT)
        assert worker.wait() == 0, worker.log
    assert steps.of("end") == [(job_id, 1)]
    assert is_done(observer, queue.name)()


def test_children_end_with_their_parent(url: str, queue: cwist_jq.Queue, steps: Steps) -> None:
    with process(url, queue.name, processes=1) as worker:
        enqueue_json(queue, data(steps, seconds=60), type="sleep")
        eventually(lambda: steps.count("begin") == 1)
        child = steps.all()[0][3]
        worker.signal(signal.SIGKILL)
        worker.wait()
        eventually(lambda: not _lives(child))


def _lives(process_id: int) -> bool:
    try:
        with open(f"/proc/{process_id}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def remember(payload: bytes, job: RemoteJob) -> None:
    """A handler in a module of its own name."""
    with open(job.headers["Log"], "a", encoding="utf-8") as log:
        print(repr((payload, job)), job.queue, file=log)


def test_what_a_handler_sees_of_its_job(
    conn: cwist_jq.Connection, queue: cwist_jq.Queue, observer: Observer, steps: Steps
) -> None:
    worker = Worker(conn, queue.name, processes=1)
    worker.handler("ä")(remember)
    headers = {"Log": str(steps.path)}
    job_id = queue.enqueue(b"\x00\n\xff", type="ä", headers=headers)
    with running(worker):
        eventually(is_done(observer, queue.name))
    seen = f"(b'\\x00\\n\\xff', <cwist_jq.worker.RemoteJob {job_id!r} type='ä' attempts=1>)"
    assert steps.path.read_text("utf-8") == f"{seen} {queue.name}\n"


def test_a_handler_must_be_found_by_its_name(conn: cwist_jq.Connection, queue_name: str) -> None:
    def inner(data: Any) -> None: ...

    for handler in (inner, lambda data: data):
        worker = Worker(conn, queue_name, processes=1)
        worker.handler("t")(handler)
        with pytest.raises(cwist_jq.InvalidParam, match="child process"):
            worker.run()


def test_no_child_is_forked(url: str, queue: cwist_jq.Queue, steps: Steps) -> None:
    """F01: a child has threads and connections of its own, or none."""
    with process(url, queue.name, processes=1):
        enqueue_json(queue, data(steps, seconds=60), type="sleep")
        eventually(lambda: steps.count("begin") == 1)
        with open(f"/proc/{steps.all()[0][3]}/cmdline", "rb") as words:
            assert b"multiprocessing.spawn" in words.read()
