"""Many jobs, workers that are killed all the time, servers that are restarted: nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import servers, watchdog
from tests.fault import soak
from tests.fault.support import leftovers
from tests.waiting import eventually

pytestmark = pytest.mark.quiet

JOBS = 20_000
PRODUCERS = 4
WORKERS = 4
KILL_EVERY = 0.2
#: The server is restarted when this many records were written.
RESTARTS = (5_000, 12_000)
LIMIT = 90.0


class _Crew:
    """The processes of the test."""

    def __init__(self, url: str, queue: str, folder: Path) -> None:
        self._common = (url, queue)
        self._folder = folder
        self._started = 0
        self.producers: list[subprocess.Popen[str]] = []
        self.workers: list[subprocess.Popen[str]] = []

    def _start(self, verb: str, *words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.fault.soak", verb, *self._common]
        process = subprocess.Popen(
            [*command, *map(str, words)], cwd=servers.ROOT, stdout=subprocess.PIPE, text=True
        )
        watchdog.watch(process.pid)
        return process

    def start(self) -> None:
        for first in range(PRODUCERS):
            self.producers.append(self._start("produce", first, PRODUCERS, JOBS))
        for _ in range(WORKERS):
            self.workers.append(self._worker())

    def _worker(self) -> subprocess.Popen[str]:
        self._started += 1
        return self._start("work", self._folder / f"{self._started}")

    def replace(self, place: int) -> None:
        """Kills one worker and starts another in its place."""
        self._end(self.workers[place])
        self.workers[place] = self._worker()

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        assert process.poll() is None, f"a worker ended by itself: {process.returncode}"
        process.kill()
        process.communicate()
        watchdog.forget(process.pid)

    def producing(self) -> bool:
        return any(process.poll() is None for process in self.producers)

    def unknown(self) -> int:
        """How often an enqueue's outcome was unknown; every producer must have ended well."""
        total = 0
        for process in self.producers:
            assert process.wait() == 0
            assert process.stdout is not None
            total += int(process.stdout.read())
        return total

    def records(self) -> int:
        """How many records were written; cheap."""
        return sum(file.stat().st_size for file in self._folder.iterdir()) // soak.RECORD

    def done(self) -> Counter[int]:
        """The numbers that were recorded, and how often."""
        found: Counter[int] = Counter()
        for file in self._folder.iterdir():
            found.update(map(int, file.read_text().split()))
        return found

    def close(self) -> None:
        for process in [*self.producers, *self.workers]:
            process.kill()
        for process in [*self.producers, *self.workers]:
            process.wait()
            watchdog.forget(process.pid)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def crew_of(tmp_path: Path) -> Iterator[Callable[[str, str], _Crew]]:
    """Makes the crew; what still runs after the test is killed."""
    made: list[_Crew] = []

    def make(url: str, queue: str) -> _Crew:
        made.append(_Crew(url, queue, tmp_path))
        return made[-1]

    yield make
    for crew in made:
        crew.close()


def _rage(crew: _Crew, server: Any, finished: Callable[[], bool]) -> int:
    """Kills a worker every 200 ms and restarts the server twice; how many workers were killed."""
    start = time.monotonic()
    restarts = list(RESTARTS)
    kills = 0
    while not finished():
        assert time.monotonic() - start < LIMIT, f"{crew.records()} records in {LIMIT} s"
        time.sleep(KILL_EVERY)
        crew.replace(kills % WORKERS)
        kills += 1
        if restarts and crew.records() >= restarts[0]:
            restarts.pop(0)
            server.restart()
    assert not restarts, "the server was not restarted twice"
    return kills


@pytest.mark.slow
def test_nothing_is_lost_in_a_soak(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    engine: str,
    queue_name: str,
    crew_of: Callable[[str, str], _Crew],
) -> None:
    """L01, L02, L03, L08, R01, R05, P03, X01."""
    server = make_server(**({"appendonly": "everysec"} if engine == "redis" else {}))
    observer = make_observer(engine, server.url)
    crew = crew_of(server.url, queue_name)
    everything = set(range(JOBS))
    poison = {number for number in everything if number % soak.POISON == 0}
    crew.start()

    def finished() -> bool:
        if crew.producing() or crew.records() < JOBS - len(poison):
            return False
        return set(crew.done()) == everything - poison

    kills = _rage(crew, server, finished)
    eventually(
        lambda: not observer.ready_and_claimed(queue_name) and not observer.delayed(queue_name),
        timeout=30.0,
        pause=0.1,
    )
    unknown = crew.unknown()
    crew.close()
    done = crew.done()
    letters = observer.dead(queue_name)
    dead = [soak.number_of(letter.payload) for letter in letters]
    repeated = sum(done.values()) - len(done)
    print(f"{engine}: {kills} kills, {repeated} repeated, {unknown} unknown, {len(dead)} dead")

    assert set(done) | set(dead) == everything
    assert poison <= set(dead)
    assert not set(done) & set(dead)
    # Only an enqueue whose outcome was unknown may be there twice.
    assert len(dead) - len(set(dead)) <= unknown <= PRODUCERS * len(RESTARTS)
    for letter in letters:
        assert letter.attempts == soak.DELIVERIES
        assert letter.cause in ("nacked", "lease-expired")
        assert letter.reason in ("poison", None)
        assert letter.type == "soak"
    # A repeat needs a reason: a killed worker, an unknown outcome, an ack cut by a restart.
    assert repeated <= kills + unknown + WORKERS * len(RESTARTS)
    assert leftovers(observer, queue_name, dead=len(dead)) == []
