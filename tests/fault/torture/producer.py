"""A producer: python -m tests.fault.torture.producer URL QUEUE FOLDER NUMBER SEED

It stores jobs in each way that the library has, until it is killed. A number is tried once, but
with a dedupe key until it is known to be stored.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from pathlib import Path
from typing import Any

import cwist_jq
from cwist_jq import Item
from tests.fault.torture.jobs import PASSING, open_queue, payload
from tests.fault.torture.ledger import Ledger

#: How many numbers a producer has for itself.
SHARE = 10_000_000

#: How many jobs may wait.
MOST = 2_000

_PAUSE = 0.02


class _Producer:
    """Its state: which number comes next."""

    def __init__(self, queue: Any, ledger: Ledger, first: int, chance: random.Random) -> None:
        self._queue = queue
        self._ledger = ledger
        self._next = first
        self._chance = chance

    def run(self) -> None:
        """Until it is killed."""
        while True:
            way = self._chance.choice([self._plain, self._delayed, self._keyed, self._batch])
            way()
            time.sleep(self._chance.random() * _PAUSE)
            if self._chance.random() < 0.05:
                self._wait_for_workers()

    def _wait_for_workers(self) -> None:
        """Workers that are killed all the time are slow: no more jobs than they can end."""
        with contextlib.suppress(*PASSING):
            while self._queue.stats().ready > MOST:
                time.sleep(10 * _PAUSE)

    def _number(self, way: str) -> int:
        self._next += 1
        self._ledger.note("try", self._next, way)
        return self._next

    def _result(self, number: int, result: object) -> None:
        if isinstance(result, str):
            self._ledger.note("stored", number, result)
        elif isinstance(result, cwist_jq.OutcomeUnknown):
            self._ledger.note("unknown", number)
        else:
            self._ledger.note("refused", number, type(result).__name__)

    def _once(self, number: int, **options: Any) -> bool:
        try:
            result: object = self._queue.enqueue(payload(number), **options)
        except PASSING as error:
            result = error
        self._result(number, result)
        return isinstance(result, str)

    def _plain(self) -> None:
        self._once(self._number("plain"), type="plain")

    def _delayed(self) -> None:
        self._once(self._number("delayed"), type="delayed", delay=self._chance.random())

    def _keyed(self) -> None:
        number = self._number("keyed")
        while not self._once(number, type="keyed", dedupe_key=f"key-{number}"):
            time.sleep(_PAUSE)
            self._ledger.note("try", number, "keyed")

    def _batch(self) -> None:
        numbers = [self._number("batch") for _ in range(self._chance.randint(2, 20))]
        items = [Item(payload(number), "batch") for number in numbers]
        try:
            results: list[object] = list(self._queue.enqueue_many(items))
        except PASSING as error:
            results = list(error.results or [error] * len(items))
        for number, result in zip(numbers, results, strict=True):
            self._result(number, result)


def main(url: str, name: str, folder: str, number: str, seed: str) -> None:
    """The process."""
    ledger = Ledger(Path(folder), f"producer-{number}")
    queue = open_queue(url, name)
    _Producer(queue, ledger, int(number) * SHARE, random.Random(seed)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
