"""The processes of the torture: started, killed, frozen, asked to end."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
from pathlib import Path

from tests import servers, watchdog

__all__ = ["Crew", "Member"]


class Member:
    """A process of the crew."""

    def __init__(self, kind: str, number: int, process: subprocess.Popen[bytes]) -> None:
        self.kind = kind
        self.number = number
        self.process = process

    @property
    def name(self) -> str:
        """As the ledger names it."""
        return f"{self.kind}-{self.number}"


class Crew:
    """All processes. What ends by itself is noted: none should."""

    def __init__(self, urls: list[str], queue: str, folder: Path, chance: random.Random) -> None:
        self._urls = urls
        self._queue = queue
        self._folder = folder
        self._chance = chance
        self._started = 0
        self.members: list[Member] = []
        #: What went wrong with processes, in words.
        self.faults: list[str] = []

    def start(self, kind: str) -> Member:
        """One more."""
        self._started += 1
        module = f"tests.fault.torture.{kind}"
        words = [self._chance.choice(self._urls), self._queue, str(self._folder / "ledger")]
        seed = str(self._chance.getrandbits(32))
        with open(self._folder / "errors", "ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *words, str(self._started), seed],
                cwd=servers.ROOT,
                stderr=errors,
            )
        watchdog.watch(process.pid)
        member = Member(kind, self._started, process)
        self.members.append(member)
        return member

    def of(self, kind: str) -> list[Member]:
        """Those of a kind."""
        return [member for member in self.members if member.kind == kind]

    def kill(self, member: Member) -> None:
        """As a crash does."""
        if member.process.poll() is not None:
            self.faults.append(f"{member.name} ended by itself: {member.process.returncode}")
        member.process.kill()
        self._gone(member)

    def end(self, member: Member) -> None:
        """Politely; it must end well."""
        member.process.send_signal(signal.SIGTERM)
        try:
            code = member.process.wait(20)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{member.name} did not end within 20 s")
            member.process.kill()
        else:
            if code != 0 and (code != -signal.SIGTERM or self._has_started(member)):
                self.faults.append(f"{member.name} ended with {code}")
        self._gone(member)

    def _has_started(self, member: Member) -> bool:
        """Before that SIGTERM ends it as any program."""
        file = self._folder / "ledger" / member.name
        return file.exists() and " started" in file.read_text("utf-8")

    def _gone(self, member: Member) -> None:
        member.process.wait()
        watchdog.forget(member.process.pid)
        self.members.remove(member)

    def close(self) -> None:
        """Kills all that is left."""
        for member in list(self.members):
            with contextlib.suppress(ProcessLookupError):
                member.process.send_signal(signal.SIGCONT)
            member.process.kill()
            self._gone(member)
