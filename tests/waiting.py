"""Waiting in tests: for a condition, and for a call in another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

#: How long a test waits for what must come; far more than it should take on a busy machine.
PATIENCE = 10.0

_Result = TypeVar("_Result")


def eventually(
    condition: Callable[[], _Result], timeout: float = PATIENCE, pause: float = 0.01
) -> _Result:
    """Asks until the answer is true; returns it. Fails with the last answer at the timeout."""
    end = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        name = getattr(condition, "__name__", "the condition")
        assert time.monotonic() < end, f"{name} is still {answer!r} after {timeout} s"
        time.sleep(pause)


class Background(Generic[_Result]):
    """Runs a call in a thread; `result` waits for it and passes on what it raised."""

    def __init__(self, call: Callable[..., _Result], *arguments: Any) -> None:
        self._call = call
        self._arguments = arguments
        self._answer: list[_Result] = []
        self._error: BaseException | None = None
        #: When the call returned or raised.
        self.ended_at = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer.append(self._call(*self._arguments))
        except BaseException as error:  # noqa: BLE001 (raised again by result)
            self._error = error
        self.ended_at = time.monotonic()

    @property
    def running(self) -> bool:
        """Whether the call has not returned yet."""
        return self._thread.is_alive()

    def result(self, timeout: float = 2 * PATIENCE) -> _Result:
        """What the call returned."""
        self._thread.join(timeout)
        assert not self.running, f"the call is still running after {timeout} s"
        if self._error is not None:
            raise self._error
        return self._answer[0]
