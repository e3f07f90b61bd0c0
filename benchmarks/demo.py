"""Shows the queue at work: `make demo`.

On private servers of both engines it runs producers and workers as processes of their own. Every
tenth job fails at its first delivery, one worker kills itself in the middle of a job, and one job
fails for ever. At the end every job is accounted for: done, dead, or lost, of which there are none.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cwist_jq
from tests import servers

PRODUCERS = 2
WORKERS = 3
JOBS = 1500
QUEUE = "demo"
PATIENCE = 60.0


class FlakyError(Exception):
    """What the demo's handler raises on purpose."""


@dataclass
class Tally:
    """What became of the jobs of one engine."""

    server: str
    enqueued: int = 0
    done: int = 0
    retried: int = 0
    dead: int = 0
    crashes: int = 0
    rate: float = 0.0

    @property
    def lost(self) -> int:
        """Jobs that are neither done nor dead."""
        return self.enqueued - self.done - self.dead


# ---- the processes ----


def produce(url: str, number: int, record: Path) -> None:
    """A producer: enqueues its share and notes every id that the server gave."""
    with cwist_jq.connect(url) as conn, record.open("w") as notes:
        queue = conn.queue(QUEUE)
        for index in range(JOBS // PRODUCERS):
            kind = "order"
            if number == 0 and index == 50:
                kind = "crash"
            elif number == 1 and index == 50:
                kind = "poison"
            body = json.dumps({"producer": number, "index": index})
            job_id = queue.enqueue(body.encode(), type=kind)
            notes.write(f"{job_id} {time.monotonic()}\n")


def handle(job: cwist_jq.Job) -> None:
    """The flaky handler."""
    order = json.loads(job.payload)
    if job.type == "poison":
        raise FlakyError("this job fails every time")
    if job.attempts > 1:
        return
    if job.type == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if order["index"] % 10 == 0:
        raise FlakyError("fails at the first delivery")


def work(url: str, record: Path) -> None:
    """A worker: handles jobs until it is interrupted, and notes each delivery and its end."""
    # A shell starts background jobs with this signal ignored, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with cwist_jq.connect(url) as conn, record.open("w", buffering=1) as notes:
        queue = conn.queue(QUEUE, visibility_timeout=1.0, max_retries=3, retry_delay=0.05)
        with contextlib.suppress(KeyboardInterrupt):
            for job in queue:
                notes.write(f"claimed {job.id} {job.attempts} {time.monotonic()}\n")
                with contextlib.suppress(FlakyError), job:
                    handle(job)
                    job.ack()
                    notes.write(f"done {job.id} {job.attempts} {time.monotonic()}\n")


def _spawn(*words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.demo", *map(str, words)]
    return subprocess.Popen(command, cwd=servers.ROOT)


@contextlib.contextmanager
def _workers(url: str, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    started = [_spawn("work", url, folder / f"worker-{n}") for n in range(WORKERS)]
    try:
        yield started
    finally:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in started:
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# ---- the account ----


def _notes(folder: Path, pattern: str) -> list[list[str]]:
    """The complete lines of all records of a kind, split into words."""
    found = []
    for path in folder.glob(pattern):
        text = path.read_text()
        found += [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
    return found


def _count(tally: Tally, folder: Path, dead: int) -> None:
    deliveries = _notes(folder, "worker-*")
    ended = {line[1] for line in deliveries if line[0] == "done"}
    tally.done = len(ended)
    tally.dead = dead
    tally.retried = sum(line[0] == "claimed" and int(line[2]) > 1 for line in deliveries)
    firsts = [float(line[3]) for line in deliveries if line[0] == "done" and line[2] == "1"]
    starts = [float(line[1]) for line in _notes(folder, "producer-*")]
    if firsts and starts and max(firsts) > min(starts):
        tally.rate = len(firsts) / (max(firsts) - min(starts))


def run(engine: str) -> Tally:
    """Runs the whole play on one engine."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cwist-jq-demo-")))
        durable = {"appendonly": "everysec"} if engine == "redis" else {}
        server = servers.start_server(engine, **durable)
        stack.callback(server.close)
        tally = Tally(f"{engine} {server.kind}")
        print(f"demo: {tally.server} on {server.host}:{server.port}", flush=True)
        queue = stack.enter_context(cwist_jq.connect(server.url)).queue(QUEUE)
        producers = [
            stack.enter_context(_spawn("produce", server.url, n, folder / f"producer-{n}"))
            for n in range(PRODUCERS)
        ]
        started = stack.enter_context(_workers(server.url, folder))
        for process in producers:
            if process.wait(PATIENCE) != 0:
                raise SystemExit("demo: a producer failed")
        tally.enqueued = len({line[0] for line in _notes(folder, "producer-*")})
        print(f"demo: {PRODUCERS} producers enqueued {tally.enqueued} jobs", flush=True)
        end = time.monotonic() + PATIENCE
        while tally.lost and time.monotonic() < end:
            time.sleep(0.05)
            _count(tally, folder, queue.dead_count())
        # One look more: a job that is done twice or dies late would show here.
        _count(tally, folder, queue.dead_count())
        tally.crashes = sum(process.poll() == -signal.SIGKILL for process in started)
        print(f"demo: {tally.crashes} worker was killed in the middle of a job", flush=True)
    return tally


def report(tallies: list[Tally]) -> int:
    """Prints the table; 0 when every job is accounted for."""
    head = (
        f"{'server':<16}{'enqueued':>9}{'done':>7}{'retried':>9}{'dead':>6}{'lost':>6}{'jobs/s':>9}"
    )
    print(f"\n{head}\n{'-' * len(head)}")
    for t in tallies:
        counts = f"{t.enqueued:>9}{t.done:>7}{t.retried:>9}{t.dead:>6}{t.lost:>6}"
        print(f"{t.server:<16}{counts}{t.rate:>9.0f}")
    good = all(t.lost == 0 and t.dead == 1 and t.crashes == 1 for t in tallies)
    print("\njobs/s: enqueued by 2 processes and finished by 3 at the same time, first deliveries.")
    return 0 if good else 1


def main() -> int:
    """The command line; the verbs are for the demo's own processes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    words = parser.parse_args().words
    if words[:1] == ["produce"]:
        produce(words[1], int(words[2]), Path(words[3]))
        return 0
    if words[:1] == ["work"]:
        work(words[1], Path(words[2]))
        return 0
    try:
        return report([run(engine) for engine in servers.KINDS])
    except servers.Unavailable as reason:
        print(f"demo: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
