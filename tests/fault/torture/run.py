"""The whole: python -m tests.fault.torture --minutes 20 [--seed N] [--engines redis,nats]

All that is chance comes from the seed, which is printed. The ledger stays in a folder when
something is wrong. The exit code is 1 then.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import servers
from tests.fault.torture import ledger
from tests.fault.torture.chaos import Chaos
from tests.fault.torture.checker import Report, check
from tests.fault.torture.crew import Crew
from tests.observers import Observer, observe
from tests.proxy import Proxy

__all__ = ["main", "torture"]

PRODUCERS = 2
WORKERS = 4
MENDERS = 2

#: How long healthy workers may take to finish what is left.
PATIENCE = 60.0

QUEUE = "torture"

#: What is left of a queue whose jobs are all dead.
_KEPT = ("key dead", "key deadbody", "messages in")


def _server(engine: str) -> Any:
    if engine == "redis":
        return servers.RedisServer(appendonly="everysec")
    return servers.NatsServer()


def _is_done(observer: Observer) -> bool:
    return not (observer.ready_and_claimed(QUEUE) or observer.delayed(QUEUE))


def _wait(observer: Observer) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not _is_done(observer):
        time.sleep(0.2)


def _finish(crew: Crew) -> None:
    """No new jobs, and healthy workers alone."""
    for kind in ("producer", "mender"):
        for member in crew.of(kind):
            crew.kill(member)


def torture(engine: str, seconds: float, seed: int, folder: Path) -> Report:
    """One engine for so long; the ledger goes to `folder`."""
    chance = random.Random(f"{seed}-{engine}")
    (folder / "ledger").mkdir(parents=True)
    notes = ledger.Ledger(folder / "ledger", "chaos")
    with _server(engine) as server, Proxy(server.host, server.port) as proxy:
        crew = Crew([server.url, proxy.url(engine)], QUEUE, folder, chance)
        try:
            for kind, count in (("producer", PRODUCERS), ("worker", WORKERS), ("mender", MENDERS)):
                for _ in range(count):
                    crew.start(kind)
            Chaos(crew, server, proxy, notes, chance).run(seconds)
            _finish(crew)
            observer = observe(engine, server.url)
            try:
                _wait(observer)
                for member in crew.of("worker"):
                    crew.end(member)
                letters = [(letter.id, letter.attempts) for letter in observer.dead(QUEUE)]
                left = [
                    line
                    for line in observer.leftovers(QUEUE)
                    if not any(kept in line for kept in _KEPT) or not letters
                ]
                if not _is_done(observer):
                    left.append("jobs, which healthy workers did not finish")
            finally:
                observer.close()
        finally:
            crew.close()
    report = check(ledger.read(folder / "ledger"), engine, letters, left)
    report.violations += crew.faults
    return report


def _show(engine: str, report: Report) -> None:
    print(f"torture: {engine}")
    for text, count in report.totals.items():
        print(f"    {count:>8} {text}")
    for text, count in report.repeats.most_common():
        print(f"    {count:>8} repeated: {text}")
    for text in report.violations[:50]:
        print(f"torture: {engine}: WRONG: {text}")


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="for all engines together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["redis", "nats"])
    chosen = parser.parse_args(words)
    seconds = chosen.minutes * 60 / len(chosen.engines)
    print(f"torture: seed {chosen.seed}, {seconds:.0f} s an engine", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="cwist-jq-torture-"))
    good = True
    for engine in chosen.engines:
        report = torture(engine, seconds, chosen.seed, folder / engine)
        _show(engine, report)
        good = good and not report.violations
    if good:
        shutil.rmtree(folder)
        return 0
    print(f"torture: the ledger is in {folder}; again with --seed {chosen.seed}")
    return 1
