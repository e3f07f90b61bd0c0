"""Handlers that are coroutines, on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from time import perf_counter

from cwist_jq.worker import log
from cwist_jq.worker.lane import Lane
from cwist_jq.worker.outcome import outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cwist_jq.job import Job
    from cwist_jq.worker.execution import Execution

__all__ = ["LoopLane"]


class LoopLane(Lane):
    """An event loop; each job is a task of its own."""

    def __init__(self, slots: int, ranks: int, execution: Execution) -> None:
        """At most `slots` tasks at once."""
        super().__init__(slots, ranks)
        self._run = execution.run_async
        self._tasks: dict[Job, asyncio.Task[Any]] = {}
        self._loop = asyncio.new_event_loop()
        self._called = False
        self._context = copy_context()  # each task gets a copy, whoever starts it
        self._thread = threading.Thread(target=self._serve, name="cwist_jq loop", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
                break
            except (SystemExit, KeyboardInterrupt):  # of a task that a handler has started
                log.LOGGER.exception("a task on the loop wanted to end the worker")
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        self._loop.close()

    def offer(self, jobs: Sequence[Job], rank: int) -> None:
        """Starts what there is room for, on the loop."""
        self.ready.put(jobs, rank)
        if not self._called:
            self._called = True
            self._loop.call_soon_threadsafe(self._start_some)

    def _start_some(self) -> None:
        self._called = False  # before looking: what comes from now on calls again
        ready, tasks, loop = self.ready, self._tasks, self._loop
        while len(tasks) < self.slots and not ready.closed:
            job = ready.pop()
            if job is None:
                return
            tasks[job] = self._context.run(loop.create_task, self._one(job))

    async def _one(self, job: Job) -> None:
        start = perf_counter()
        try:
            outcome = await self._run(job)
        except BaseException as error:  # noqa: BLE001 (cancelled in a middleware: the job must end)
            outcome = outcome_of(error)
        del self._tasks[job]
        self.pace.note(perf_counter() - start)
        if outcome is None:
            self.acks.append(job)
        else:
            self.others.append((job, outcome))
        self.ring()
        self._start_some()

    def running(self) -> list[Job]:
        """The jobs that run now."""
        return list(self._tasks)

    def abandon(self) -> None:
        """Cancels what runs, and ends the loop."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(1.0)

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=0.8)
        self._loop.stop()
