"""cwist_jq.aio in the shape of cwist_jq, so that the tests of one are tests of the other.

An object here stands for one of cwist_jq.aio. What is called on it is awaited on a loop in a
thread of its own, and the caller waits for that. So several threads of a test are several tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import cwist_jq
from cwist_jq import aio

__all__ = ["Loop"]


class Loop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def connect(self, *arguments: Any, **named: Any) -> Any:
        """As cwist_jq.connect()."""
        return self.call(aio.connect, *arguments, **named)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Calls on the loop, and awaits what can be awaited. Ctrl-C cancels the task."""
        task = asyncio.run_coroutine_threadsafe(_finish(function, arguments, named), self._loop)
        try:
            return self._shown(task.result())
        except cwist_jq.Error as error:
            error.claimed = self._shown(error.claimed)
            raise
        except KeyboardInterrupt:
            task.cancel()
            raise

    def _shown(self, found: Any) -> Any:
        """What a test gets of a result."""
        if isinstance(found, (aio.Connection, aio.Queue, aio.Job, aio.DeadLetters)):
            return _Twin(self, found)
        if type(found) is list:
            return [self._shown(one) for one in found]
        return found

    def close(self) -> None:
        """Ends the loop; tasks that are left are cancelled, as asyncio.run() does."""
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _finish(
    function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    found = function(*arguments, **named)
    return await found if inspect.isawaitable(found) else found


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Twin:
    """An object of cwist_jq.aio in the shape of that of cwist_jq."""

    def __init__(self, loop: Loop, real: Any) -> None:
        self._loop = loop
        self._real = real

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not inspect.ismethod(found):
            return self._loop._shown(found)

        def call(*arguments: Any, **named: Any) -> Any:
            given = [_given(one) for one in arguments]
            return self._loop.call(found, *given, **named)

        return call

    def __enter__(self) -> Self:
        self._loop.call(self._real.__aenter__)
        return self

    def __exit__(self, *what: object) -> None:
        self._loop.call(self._real.__aexit__, *what)

    def __iter__(self) -> Iterator[Any]:
        each = aiter(self._real)
        with contextlib.suppress(StopAsyncIteration):
            while True:
                yield self._loop.call(each.__anext__)

    def __reduce__(self) -> Any:
        return self._real.__reduce__()

    def __repr__(self) -> str:
        return repr(self._real).replace("cwist_jq.aio.", "cwist_jq.")


def _given(argument: Any) -> Any:
    """What cwist_jq.aio gets of an argument."""
    if isinstance(argument, _Twin):
        return argument._real
    if type(argument) in (list, tuple):
        return type(argument)(_given(one) for one in argument)
    if isinstance(argument, Iterator):
        return map(_given, argument)
    return argument
