"""A worker for tests that need one in a process of its own.

    python -m tests.conformance.worker URL QUEUE THEN OPTIONS

THEN is what it does with its jobs:
  hold   claims one, prints its id, and keeps it until it is killed or its input ends
  poison claims jobs until none is left; a payload of b"poison" kills the process, others are acked
  wait   prints "waiting", claims for ever, prints what ended that
"""

from __future__ import annotations

import ast
import os
import signal
import sys

import cwist_jq


def _hold(queue: cwist_jq.Queue) -> None:
    job = queue.claim(10)
    print("" if job is None else job.id, flush=True)
    sys.stdin.read()


def _poison(queue: cwist_jq.Queue) -> None:
    while (job := queue.claim(0.5)) is not None:
        if job.payload == b"poison":
            os.kill(os.getpid(), signal.SIGKILL)
        job.ack()
        print(job.payload.decode(), flush=True)


def _wait(queue: cwist_jq.Queue) -> None:
    print("waiting", flush=True)
    try:
        job = queue.claim(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print(job, flush=True)


def main() -> None:
    """The command line."""
    url, name, then, options = sys.argv[1:]
    deeds = {"hold": _hold, "poison": _poison, "wait": _wait}
    with cwist_jq.connect(url) as conn:
        deeds[then](conn.queue(name, **ast.literal_eval(options)))


if __name__ == "__main__":
    main()
