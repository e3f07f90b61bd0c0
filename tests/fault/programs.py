"""Programs that the fault tests run in processes of their own, to be killed or interrupted.

    python -m tests.fault.programs NAME WORD…

Each prints a line when it has come to the point that the test waits for. Moments are printed as
readings of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import cwist_jq


def say(*words: object) -> None:
    """Prints one line at once."""
    print(*words, flush=True)


def hold(url: str, name: str, visibility: str) -> None:
    """Claims one job and keeps it until it is killed."""
    queue = cwist_jq.connect(url).queue(name, visibility_timeout=float(visibility))
    job = queue.claim(20.0)
    say(None if job is None else job.payload.decode())
    while True:
        signal.pause()


def wait(url: str, name: str, timeout: str) -> None:
    """Waits in one claim; acks what comes."""
    with cwist_jq.connect(url) as conn:
        queue = conn.queue(name)
        say("waiting")
        job = queue.claim(float(timeout))
        if job is None:
            say("nothing")
        else:
            say(job.payload.decode())
            job.ack()


def interrupted(url: str, name: str) -> None:
    """Waits in the main thread; says when Ctrl-C got through to the claim."""
    queue = cwist_jq.connect(url).queue(name)
    job: Any = None
    say("waiting")
    try:
        job = queue.claim(60.0)
        say("no interrupt")
    except KeyboardInterrupt:
        # When it comes after the claim, the program has the job.
        say(time.monotonic() if job is None else "no interrupt")
        raise


def pipe(url: str, name: str) -> None:
    """Sends until the connection breaks, as a C program does: SIGPIPE ends it, were one raised."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    queue = cwist_jq.connect(url, operation_timeout=1.0).queue(name)
    queue.enqueue(b"ready")
    say("ready")
    payload = bytes(900_000)
    for _ in range(50):
        try:
            queue.enqueue(payload)
        except cwist_jq.Error as error:
            say(type(error).__name__)
            return


_kept: list[Any] = []


def leave(how: str, url: str, name: str) -> None:
    """Ends the interpreter with a live queue, an unacked job and a thread blocked in a claim."""
    conn = cwist_jq.connect(url)
    queue = conn.queue(name, visibility_timeout=0.2, max_retries=1000)
    empty = conn.queue(name + "-empty")
    _kept.extend([queue.claim(20.0), conn, queue, empty])
    say(_kept[0].payload.decode())
    blocked = threading.Event()

    def claim() -> None:
        blocked.set()
        empty.claim(60.0)

    threading.Thread(target=claim, daemon=True).start()
    blocked.wait()
    time.sleep(0.05)  # let the claim reach the server; nobody can see that from in here
    say(time.monotonic())
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise RuntimeError("unhandled")


def _in_child(work: Any) -> int:
    """Runs work in a forked child; the exit code, 1 when it raises."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork(url: str, name: str) -> None:
    """Forks; the child tries what it inherited, then a connection of its own."""
    conn = cwist_jq.connect(url)
    queue = conn.queue(name)
    job = queue.claim(20.0)
    assert job is not None

    def inherited() -> None:
        for call in (
            lambda: queue.enqueue(b"x"),
            lambda: queue.claim(5.0),
            queue.dead_count,
            queue.interrupt,
            job.ack,
            lambda: conn.queue("other"),
        ):
            start = time.monotonic()
            try:
                call()
            except cwist_jq.Closed as error:
                assert "process" in str(error), error  # noqa: PT017
            else:
                raise AssertionError("no error")
            assert time.monotonic() - start < 0.5
        queue.close()
        conn.close()

    def own() -> None:
        with cwist_jq.connect(url) as mine:
            second = mine.queue(name)
            second.enqueue(b"from the child")
            got = second.claim(5.0)
            assert got is not None
            assert got.payload == b"from the child"
            got.ack()

    say("inherited", _in_child(inherited))
    say("own", _in_child(own))
    job.ack()
    queue.enqueue(b"from the parent")
    got = queue.claim(5.0)
    assert got is not None
    got.ack()
    say("parent", got.payload.decode())
    queue.close()
    conn.close()


def storm(url: str, name: str) -> None:
    """Works under a timer signal every 5 ms, whose handler is Python code."""
    rounds = 20 if urlsplit(url).scheme in ("rediss", "tls") else 100  # handshakes take long
    rings = 0

    def ring(*_: object) -> None:
        nonlocal rings
        rings += 1

    signal.signal(signal.SIGALRM, ring)
    signal.siginterrupt(signal.SIGALRM, True)  # noqa: FBT003 (the system's own signature)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    for _ in range(rounds):
        cwist_jq.connect(url).close()
    with cwist_jq.connect(url) as conn:
        queue = conn.queue(name)
        for number in range(10 * rounds):
            queue.enqueue(b"%d" % number)
            job = queue.claim(5.0)
            assert job is not None
            assert job.payload == b"%d" % number
            job.ack()
        start = time.monotonic()
        assert queue.claim(1.0) is None
        say(time.monotonic() - start)
    signal.setitimer(signal.ITIMER_REAL, 0)
    say(rings)


def inherit(url: str, name: str) -> None:
    """Starts a program that inherits every descriptor it can, then closes its own handles."""
    import subprocess

    conn = cwist_jq.connect(url)
    queue = conn.queue(name)
    queue.enqueue(b"x")
    job = queue.claim(5.0)
    assert job is not None
    job.ack()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as sleeper:
        queue.close()
        conn.close()
        say("closed")
        sys.stdin.read()
        try:
            signal.pause()
        finally:
            sleeper.kill()


def outlive(url: str, name: str) -> None:
    """Enqueues before and after the end of the server, as a C program does."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with cwist_jq.connect(url, operation_timeout=0.3) as conn:
        queue = conn.queue(name)
        queue.enqueue(b"x")
        say("stored")
        sys.stdin.readline()
        for _ in range(3):
            try:
                queue.enqueue(b"x")
            except cwist_jq.Error as error:
                say(type(error).__name__)


def crash(url: str, name: str, visibility: str) -> None:
    """Claims a job, says when, and is gone."""
    queue = cwist_jq.connect(url).queue(
        name, visibility_timeout=float(visibility), max_retries=3, retry_delay=5.0
    )
    job = queue.claim(20.0)
    say(None if job is None else job.attempts, time.monotonic())
    os.kill(os.getpid(), signal.SIGKILL)


def claims(url: str, name: str, visibility: str) -> None:
    """Claims and acks without a pause, until it is killed."""
    queue = cwist_jq.connect(url).queue(
        name, visibility_timeout=float(visibility), max_retries=1000
    )
    say("working")
    while True:
        job = queue.claim(1.0)
        if job is not None:
            time.sleep(0.002)
            job.ack()


def requeue_all(url: str, name: str) -> None:
    """Requeues all dead letters, when it is told to."""
    with cwist_jq.connect(url) as conn:
        queue = conn.queue(name)
        queue.dead_count()
        say("ready")
        sys.stdin.readline()
        queue.dead.requeue_all()


# ---- under tests/fault/shim.c ----


def _shim() -> Any:
    """The functions of the library that was loaded before all others."""
    return ctypes.CDLL(os.environ["LD_PRELOAD"])


def wrong_clock(url: str, name: str, task: str) -> None:
    """Enqueues with a delay of a second, or claims twice with leases of a second; says when."""
    say(int(time.time()))
    with cwist_jq.connect(url) as conn:
        queue = conn.queue(name, visibility_timeout=1.0)
        if task == "enqueue":
            queue.enqueue(b"delayed", delay=1.0)
            say(time.monotonic())
            return
        for _ in range(2):
            job = queue.claim(20.0)
            assert job is not None
            say(time.monotonic(), job.attempts)
            if job.attempts == 2:
                job.ack()


def set_clock(url: str, name: str, step: str) -> None:
    """Sets the clock in the middle of a claim, and while a lease is kept."""
    shim = _shim()
    with cwist_jq.connect(url) as conn:
        empty = conn.queue(name + "-empty")
        queue = conn.queue(name, visibility_timeout=0.5, auto_renew=True)
        before = time.time()
        setter = threading.Timer(0.3, shim.shim_set_clock, [ctypes.c_long(int(step))])
        setter.start()
        start = time.monotonic()
        assert empty.claim(1.0) is None
        say(time.monotonic() - start)
        say(round(time.time() - before))
        queue.enqueue(b"kept")
        job = queue.claim(5.0)
        assert job is not None
        shim.shim_set_clock(ctypes.c_long(0))
        time.sleep(0.6)
        shim.shim_set_clock(ctypes.c_long(int(step)))
        time.sleep(0.6)
        say(job.lease_lost, 0.0 < job.lease_remaining <= 0.5)
        job.ack()


def lost_names(url: str, name: str) -> None:
    """32 threads work on one queue while the name of its server is lost and found again."""
    shim = _shim()
    over = threading.Event()
    done = [0] * 32
    failed: list[str] = []

    def work(number: int) -> None:
        while not over.is_set():
            try:
                queue.enqueue(b"x")
                job = queue.claim(1.0)
                if job is not None:
                    job.ack()
                done[number] += 1
            except (cwist_jq.ConnectionFailed, cwist_jq.OutcomeUnknown, cwist_jq.LeaseLost) as bad:
                failed.append(str(bad))

    conn = cwist_jq.connect(url, operation_timeout=0.5, connect_timeout=0.5)
    queue = conn.queue(name)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    while min(done) < 3:
        time.sleep(0.01)
    before = len(list(Path("/proc/self/fd").iterdir()))
    say("working")
    sys.stdin.readline()
    shim.shim_lose_names(1)
    say("lost")
    sys.stdin.readline()
    say(shim.shim_lookups(), len(failed), any("resolve" in text for text in failed))
    shim.shim_lose_names(0)
    found = list(done)
    while any(now < then + 3 for now, then in zip(done, found, strict=True)):
        time.sleep(0.01)
    say("all work again")
    over.set()
    for thread in threads:
        thread.join()
    say(before, len(list(Path("/proc/self/fd").iterdir())))
    queue.close()
    conn.close()


def main(words: list[str]) -> NoReturn:
    """Runs one of the programs above."""
    here = (
        hold,
        wait,
        interrupted,
        leave,
        fork,
        storm,
        inherit,
        pipe,
        outlive,
        requeue_all,
        crash,
        claims,
    )
    under_shim = (wrong_clock, set_clock, lost_names)
    chosen: dict[str, Any] = {program.__name__: program for program in (*here, *under_shim)}
    chosen[words[0]](*words[1:])
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
