"""What is done to processes, to the server and to the network, at random moments."""

from __future__ import annotations

import random
import signal
import time
from typing import Any

from tests.fault.torture.crew import Crew
from tests.fault.torture.jobs import VISIBILITY
from tests.fault.torture.ledger import Ledger
from tests.proxy import Proxy

__all__ = ["Chaos"]

#: How often each happens, to each other.
_WEIGHTS = {
    "kill_worker": 10,
    "kill_producer": 3,
    "kill_mender": 1,
    "end_worker": 3,
    "freeze_worker": 3,
    "cut": 6,
    "lose_replies": 6,
    "kill_server": 3,
    "restart_server": 2,
}

#: Seconds between two of them, on average.
_GAP = 0.4
#: A server is left alone for so long, so that jobs flow in between.
_SERVER_REST = 3.0


class Chaos:
    """Does one thing after the other; each is noted before it is done."""

    def __init__(
        self, crew: Crew, server: Any, proxy: Proxy, ledger: Ledger, chance: random.Random
    ) -> None:
        self._crew = crew
        self._server = server
        self._proxy = proxy
        self._ledger = ledger
        self._chance = chance
        self._server_since = time.monotonic()

    def run(self, seconds: float) -> None:
        """For so long."""
        end = time.monotonic() + seconds
        names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        while True:
            # Drawn whatever the clock says, so that a seed gives the same order.
            gap = self._chance.expovariate(1 / _GAP)
            name = self._chance.choices(names, weights)[0]
            if time.monotonic() + gap > end:
                return
            time.sleep(gap)
            getattr(self, f"_{name}")()

    def _kill(self, kind: str) -> None:
        member = self._chance.choice(self._crew.of(kind))
        self._ledger.note("killed", member.name)
        self._crew.kill(member)
        self._crew.start(kind)

    def _kill_worker(self) -> None:
        self._kill("worker")

    def _kill_producer(self) -> None:
        self._kill("producer")

    def _kill_mender(self) -> None:
        self._kill("mender")

    def _end_worker(self) -> None:
        member = self._chance.choice(self._crew.of("worker"))
        self._ledger.note("asked-to-end", member.name)
        self._crew.end(member)
        self._crew.start("worker")

    def _freeze_worker(self) -> None:
        """Beyond its lease; it goes on afterwards and must be fenced."""
        member = self._chance.choice(self._crew.of("worker"))
        self._ledger.note("frozen", member.name)
        member.process.send_signal(signal.SIGSTOP)
        time.sleep(VISIBILITY * (0.5 + self._chance.random()))
        member.process.send_signal(signal.SIGCONT)

    def _cut(self) -> None:
        self._ledger.note("cut", self._proxy.cut())

    def _lose_replies(self) -> None:
        """The server has done what was asked, and nobody hears it."""
        self._ledger.note("cut", 1)
        self._proxy.cut_after(self._chance.randint(1, 2000), self._chance.choice(["up", "down"]))

    def _kill_server(self) -> None:
        self._hit_server("server-killed", crash=True)

    def _restart_server(self) -> None:
        self._hit_server("server-stopped", crash=False)

    def _hit_server(self, word: str, *, crash: bool) -> None:
        down = self._chance.random()
        if time.monotonic() < self._server_since + _SERVER_REST:
            return
        self._ledger.note(word)
        self._server.restart(crash=crash, down=down)
        self._ledger.note("server-started")
        self._server_since = time.monotonic()
