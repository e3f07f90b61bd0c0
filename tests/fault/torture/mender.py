"""A mender: python -m tests.fault.torture.mender URL QUEUE FOLDER NUMBER SEED

Gives dead letters another chance, one by one or all, until it is killed.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import cwist_jq
from tests.fault.torture.jobs import PASSING, open_queue
from tests.fault.torture.ledger import Ledger


def _requeue(queue: cwist_jq.Queue, ledger: Ledger, chance: random.Random) -> None:
    if chance.random() < 0.3:
        ledger.note("requeue-all")
        queue.dead.requeue_all()
        return
    for letter in queue.dead.page(20):
        if chance.random() < 0.5:
            ledger.note("requeue", letter.id)
            try:
                queue.dead.requeue(letter.id)
            except cwist_jq.NotFound:
                ledger.note("not-found", letter.id)


def main(url: str, name: str, folder: str, number: str, seed: str) -> None:
    """The process."""
    ledger = Ledger(Path(folder), f"mender-{number}")
    queue = open_queue(url, name)
    chance = random.Random(seed)
    while True:
        time.sleep(chance.uniform(0.5, 2.0))
        try:
            _requeue(queue, ledger, chance)
        except PASSING:
            ledger.note("requeue-failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
