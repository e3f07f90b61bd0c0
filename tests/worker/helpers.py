"""Workers that run beside a test: in a thread of its process, or in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cwist_jq.worker import Worker
from tests import servers
from tests.observers import Observer
from tests.waiting import PATIENCE, Background, eventually

__all__ = ["Process", "Steps", "data", "is_done", "pairs", "process", "running"]


@contextmanager
def running(worker: Worker) -> Iterator[Background[None]]:
    """Runs a worker in a thread; it must have stopped without an error in the end."""
    run = Background(worker.run)
    try:
        yield run
    finally:
        worker.stop()
        run.result()


class Process:
    """A worker in a process of its own."""

    def __init__(self, url: str, queues: Any, options: dict[str, Any]) -> None:
        words = [sys.executable, "-m", "tests.worker.program", url, repr(queues), repr(options)]
        self.popen = subprocess.Popen(words, cwd=servers.ROOT, stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.log.append(line.rstrip("\n"))

    def says(self, text: str) -> bool:
        """Whether a line of its log holds the text."""
        return any(text in line for line in self.log)

    def works(self) -> None:
        """Waits until it works."""
        eventually(lambda: self.says("works on"))

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        self.popen.send_signal(number)

    def wait(self, timeout: float = PATIENCE) -> int:
        """Waits for its end; its exit code."""
        return self.popen.wait(timeout)

    def close(self) -> None:
        """Kills it, if it has not ended."""
        self.popen.kill()
        self.popen.wait()
        self._reader.join()
        assert self.popen.stderr is not None
        self.popen.stderr.close()


@contextmanager
def process(url: str, queues: Any, **options: Any) -> Iterator[Process]:
    """Starts a worker in a process of its own; it is killed in the end."""
    made = Process(url, queues, options)
    try:
        yield made
    finally:
        made.close()


class Steps:
    """What handlers of the program wrote into a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def all(self) -> list[tuple[str, str, int, int]]:
        """Each step: its name, the id of the job, the attempt, the process."""
        found = []
        for line in self.path.read_text("utf-8").splitlines():
            name, job_id, attempt, process_id = line.split()
            found.append((name, job_id, int(attempt), int(process_id)))
        return found

    def of(self, *names: str) -> list[tuple[str, int]]:
        """The job and the attempt of each step with one of these names."""
        return [(job_id, attempt) for name, job_id, attempt, _ in self.all() if name in names]

    def count(self, name: str) -> int:
        """How many steps have the name."""
        return len(self.of(name))


def is_done(observer: Observer, *queues: str) -> Callable[[], bool]:
    """A condition: these queues hold no job that is ready, claimed or delayed."""

    def done() -> bool:
        return not any(observer.ready_and_claimed(one) + observer.delayed(one) for one in queues)

    return done


def data(steps: Steps, **more: Any) -> dict[str, Any]:
    """The payload for a handler of the program."""
    return {"log": str(steps.path), **more}


def pairs(ids: Sequence[str], attempt: int = 1) -> list[tuple[str, int]]:
    """Each job with the attempt, sorted."""
    return sorted((job_id, attempt) for job_id in ids)
