"""SIGTERM and Ctrl-C while a worker runs in the main thread."""

from __future__ import annotations

import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from typing_extensions import Self

__all__ = ["Signals"]


class Signals:
    """Calls back when one comes, for as long as the with statement lasts.

    In another thread than the main one it does nothing. A signal that is ignored, as a shell does
    with the Ctrl-C of a background job, stays so.
    """

    def __init__(self, came: Callable[[int], None]) -> None:
        """came: called with the number of each signal. It must not wait for a lock."""
        self._came = came
        self._before: dict[int, Any] = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._came(number)

    def __enter__(self) -> Self:
        """Takes the signals."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:
                    self._before[number] = before
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        """Gives them back."""
        for number, before in self._before.items():
            # None: set by something other than Python, which cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if before is None else before)
