"""A worker for tests that need one in a process of its own.

    python -m tests.worker.program URL QUEUES OPTIONS

It logs to its standard error. Its handlers write what they do into the file that the job names, a
line for each step: the step, the job's id, the attempt, the process.
"""

from __future__ import annotations

import ast
import asyncio
import ctypes
import logging
import os
import sys
import time
from typing import Any

from cwist_jq.worker import Worker


def _write(data: Any, step: str, job: Any) -> None:
    with open(data["log"], "a", encoding="utf-8") as log:
        log.write(f"{step} {job.id} {job.attempts} {os.getpid()}\n")


def sleep(data: Any, job: Any) -> None:
    _write(data, "begin", job)
    time.sleep(data.get("seconds", 0))
    _write(data, "end", job)


async def async_sleep(data: Any, job: Any) -> None:
    _write(data, "begin", job)
    await asyncio.sleep(data.get("seconds", 0))
    _write(data, "end", job)


def segfault(data: Any, job: Any) -> None:
    _write(data, "begin", job)
    ctypes.string_at(0)


def leave(data: Any, job: Any) -> None:
    _write(data, "begin", job)
    sys.exit("this handler wanted to leave")


def spin(data: Any, job: Any) -> None:
    """Holds the interpreter's lock: a C function that does not let it go."""
    _write(data, "begin", job)
    ctypes.PyDLL(None).usleep(round(data["seconds"] * 1_000_000))
    _write(data, "end", job)


async def async_spin(data: Any, job: Any) -> None:
    """Holds up the loop as well."""
    spin(data, job)


def fail(data: Any, job: Any) -> None:
    _write(data, "begin", job)
    raise ValueError("this handler fails")


FUNCTIONS = {
    "sleep": sleep,
    "async-sleep": async_sleep,
    "segfault": segfault,
    "exit": leave,
    "spin": spin,
    "async-spin": async_spin,
    "fail": fail,
}


def main() -> None:
    """The command line."""
    url, queues, options = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    worker = Worker(url, ast.literal_eval(queues), **ast.literal_eval(options))
    for kind, function in FUNCTIONS.items():
        if not (asyncio.iscoroutinefunction(function) and worker._processes):
            worker.handler(kind)(function)
    worker.run()


if __name__ == "__main__":
    main()
