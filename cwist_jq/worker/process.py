"""One child process, seen from its parent."""

from __future__ import annotations

import json
import multiprocessing
import signal
import sys
from contextlib import contextmanager, suppress

from cwist_jq.worker.child import READY, STARTED, main, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cwist_jq.job import Job
    from cwist_jq.worker.child import Addresses

__all__ = ["Gone", "Process"]

# How long a process that closed its pipe, or was told to end, may take to do so.
END_S = 1.0

_spawn = multiprocessing.get_context("spawn")


class Gone(Exception):  # noqa: N818 (says it)
    """The process has ended; the text says how."""


class Process:
    """A process that runs handlers. One thread at a time may use it; kill() is for any.

    Attributes:
        began: Whether it has begun with the job that it was asked to do.
    """

    def __init__(self, addresses: Addresses) -> None:
        """Starts it."""
        self.began = False
        self._link, far = _spawn.Pipe()
        self._process = _spawn.Process(target=main, args=(far, addresses))
        if sys.platform != "win32":
            # It would be started with the first process, and let the signals through again.
            from multiprocessing import resource_tracker

            resource_tracker.ensure_running()
        with _signals_blocked():
            self._process.start()
        far.close()

    def wait(self) -> None:
        """Waits until it is ready.

        Raises:
            Gone: It ended before that.
        """
        self._hear(READY)

    def ask(self, job: Job) -> dict[str, Any]:
        """Has a job done.

        Returns:
            Nothing when it is done, else how it ended and a traceback.

        Raises:
            Gone: The process ended; `began` says whether it had begun with the job.
        """
        self.began = False
        try:
            self._link.send_bytes(packed(job))
        except OSError:
            raise self._gone() from None
        self._hear(STARTED)
        self.began = True
        told: dict[str, Any] = json.loads(self._hear())
        return told

    def look(self) -> None:
        """Raises Gone when it has ended meanwhile."""
        if not self._process.is_alive():
            raise self._gone()

    def end(self) -> None:
        """Tells it that there are no more jobs, and waits for its end."""
        with suppress(OSError):  # it has ended
            self._link.send_bytes(b"")
        self._process.join(END_S)
        self._close()

    def kill(self) -> None:
        """Ends it at once, whatever it does."""
        self._process.kill()

    def _hear(self, wanted: bytes | None = None) -> bytes:
        try:
            said = self._link.recv_bytes()
        except (EOFError, OSError):
            raise self._gone() from None
        if wanted is not None and said != wanted:
            raise RuntimeError(f"a child process said {said[:100]!r} instead of {wanted!r}")
        return said

    def _gone(self) -> Gone:
        self._process.join(END_S)
        code = self._process.exitcode
        self._close()
        return Gone(_how(code))

    def _close(self) -> None:
        """Ends the process, if it has not ended, and lets its pipe go."""
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._link.close()


def _how(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "it closed its pipe"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Blocks SIGINT and SIGTERM in this thread, and so in a process that it starts.

    The process lets them through when it is ready to leave them to its parent.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
