"""A worker: python -m tests.fault.torture.worker URL QUEUE FOLDER NUMBER SEED

What it does with a job is chance: acks, nacks, extends, hands back, holds it beyond the lease. It
runs until it is killed; SIGTERM lets it hand back what it has.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.fault.torture.jobs import PASSING, POISON, VISIBILITY, number_of, open_queue
from tests.fault.torture.ledger import Ledger

#: The share of each way to treat a job; the rest is acked at once.
_WAYS = {"hold": 0.01, "reject": 0.01, "nack": 0.05, "release": 0.05, "extend": 0.05}


class _Worker:
    """One queue, a job or some jobs at a time."""

    def __init__(self, queue: Any, ledger: Ledger, chance: random.Random) -> None:
        self._queue = queue
        self._ledger = ledger
        self._chance = chance
        self.ending = False

    def run(self) -> None:
        """Until the first SIGTERM."""
        while not self.ending:
            try:
                jobs = self._claim()
            except PASSING:
                time.sleep(0.02)
                continue
            self._work(jobs)
        self._ledger.note("ended")

    def _claim(self) -> list[Any]:
        if self._chance.random() < 0.7:
            job = self._queue.claim(0.5)
            return [] if job is None else [job]
        return list(self._queue.claim_many(self._chance.randint(2, 10), 0.5))

    def _work(self, jobs: list[Any]) -> None:
        for job in jobs:
            number = number_of(job.payload)
            word = "damaged" if number is None else number
            self._ledger.note("claimed", word, job.id, job.attempts)
        if len(jobs) > 1 and not any((number_of(job.payload) or 0) % POISON == 0 for job in jobs):
            self._ack_many(jobs)
            return
        for job in jobs:
            self._one(job)

    def _one(self, job: Any) -> None:
        way = self._way(job)
        if way == "hold":
            time.sleep(VISIBILITY * (0.8 + self._chance.random()))
        elif way == "extend":
            time.sleep(self._chance.random() * VISIBILITY / 2)
            self._settle("extend", job, job.extend)
        if way == "nack":
            self._settle("nack", job, lambda: job.nack("torture"))
        elif way == "reject":
            self._settle("nack", job, lambda: job.nack("torture", dead=True))
        elif way == "release":
            self._settle("release", job, job.release)
        else:
            self._settle("ack", job, job.ack)

    def _way(self, job: Any) -> str:
        if self.ending:
            return "release"
        if (number_of(job.payload) or 0) % POISON == 0:
            return "nack"
        drawn = self._chance.random()
        for way, share in _WAYS.items():
            if drawn < share:
                return way
            drawn -= share
        return "ack"

    def _settle(self, what: str, job: Any, call: Any) -> None:
        self._ledger.note("begin", what, job.id, job.attempts)
        try:
            call()
        except PASSING as error:
            self._ledger.note("failed", what, job.id, job.attempts, type(error).__name__)
        else:
            self._ledger.note("done", what, job.id, job.attempts)

    def _ack_many(self, jobs: list[Any]) -> None:
        for job in jobs:
            self._ledger.note("begin", "ack", job.id, job.attempts)
        results: list[object] = [None] * len(jobs)
        try:
            self._queue.ack_many(jobs)
        except PASSING as error:
            results = list(error.results or [error] * len(jobs))
        for job, result in zip(jobs, results, strict=True):
            if result is None:
                self._ledger.note("done", "ack", job.id, job.attempts)
            else:
                name = type(result).__name__
                self._ledger.note("failed", "ack", job.id, job.attempts, name)


def main(url: str, name: str, folder: str, number: str, seed: str) -> None:
    """The process."""
    ledger = Ledger(Path(folder), f"worker-{number}")
    worker = _Worker(open_queue(url, name), ledger, random.Random(seed))

    def end(*_: object) -> None:
        worker.ending = True

    signal.signal(signal.SIGTERM, end)
    ledger.note("started")
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
