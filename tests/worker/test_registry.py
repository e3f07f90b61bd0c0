"""Handlers by type, what they are called with, and the options of a worker; without a server."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import cwist_jq
import cwist_jq.worker
from cwist_jq.job import Job
from cwist_jq.worker import Reject, Retry, Snooze, Worker
from cwist_jq.worker.outcome import DEAD, NACK, RELEASE, outcome_of
from cwist_jq.worker.registry import Handler, Registry


def _job(payload: bytes) -> Any:
    return SimpleNamespace(payload=payload, id="1", type="t", attempts=1)


class _Method:
    def handle(self, data: Any) -> Any:
        return data

    async def __call__(self, data: Any) -> Any:
        return data


def test_what_a_function_is_called_with() -> None:
    job = _job(b'{"a": 1}')

    def only_job(job: Job) -> Any:
        return job

    def only_job_by_name(job: cwist_jq.Job) -> Any:
        return job

    def raw(payload: bytes) -> Any:
        return payload

    def with_default(data: Any, more: int = 5) -> Any:
        return data, more

    assert Handler(lambda data: data, ()).call(job) == {"a": 1}
    assert Handler(lambda data, job: (data, job), ()).call(job) == ({"a": 1}, job)
    assert Handler(only_job, ()).call(job) is job
    assert Handler(only_job_by_name, ()).call(job) is job
    assert Handler(raw, ()).call(job) == b'{"a": 1}'
    assert Handler(with_default, ()).call(job) == ({"a": 1}, 5)
    assert Handler(_Method().handle, ()).call(job) == {"a": 1}
    assert Handler(functools.partial(with_default, more=7), ()).call(job) == ({"a": 1}, 7)
    assert Handler(lambda data: data, ()).call(_job(b"")) is None


@pytest.mark.parametrize("function", [lambda: None, lambda a, b, c: None, lambda *, data: None])
def test_a_function_must_take_a_job(function: Any) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match="allowed: the data"):
        Registry().add(function, ("t",))


def test_coroutines_are_known() -> None:
    async def coroutine(data: Any) -> None: ...

    assert Handler(coroutine, ()).is_async
    assert Handler(functools.partial(coroutine), ()).is_async
    assert Handler(_Method(), ()).is_async
    assert not Handler(_Method().handle, ()).is_async


def test_one_handler_for_a_type() -> None:
    registry = Registry()
    registry.add(lambda data: 1, ("a", "b"))
    with pytest.raises(cwist_jq.InvalidParam, match="type 'b'"):
        registry.add(lambda data: 2, ("c", "b"))
    registry.add(lambda data: 3, ())
    with pytest.raises(cwist_jq.InvalidParam, match="all other"):
        registry.add(lambda data: 4, ())
    for kind, result in (("a", 1), ("b", 1), ("c", 3), (None, 3)):
        handler = registry.find(kind)
        assert handler is not None
        assert handler.call(_job(b"")) == result
    assert len(registry.all()) == 2


@pytest.mark.parametrize(("kind", "error"), [(1, "is a int"), ("", "type is ''")])
def test_types_are_texts(kind: Any, error: str) -> None:
    worker = Worker("redis://x", "q")
    with pytest.raises(cwist_jq.InvalidParam, match=error):
        worker.handler(kind)(lambda data: None)


def test_the_decorator_leaves_the_function() -> None:
    worker = Worker("redis://x", "q")

    def one(data: Any) -> None: ...

    assert worker.handler("t")(one) is one
    assert worker.handler(one) is one


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"concurrency": 0}, "concurrency is 0; allowed: 1 to 10000"),
        ({"concurrency": True}, "concurrency is a bool"),
        ({"processes": -1}, "processes is -1; allowed: 0 to 1000"),
        ({"shutdown_timeout": -1}, "shutdown_timeout is -1; allowed: 0 to 86400 seconds"),
        ({"queues": []}, "queues is empty"),
        ({"queues": ["a", "a"]}, "queues has one twice"),
        ({"queues": [1]}, "a queue is a int"),
        ({"queues": {"a": 0}}, "weight is 0; allowed: 1 to 1000"),
        ({"middleware": [print]}, "middleware has a builtin_function_or_method"),
        ({"conn": 1}, "conn is a int"),
    ],
)
def test_options_of_a_worker(options: dict[str, Any], error: str) -> None:
    """N04: named with its range, before anything is started."""
    with pytest.raises(cwist_jq.InvalidParam, match=error):
        Worker(**{"conn": "redis://x", "queues": "q", **options})


def test_a_worker_needs_a_handler() -> None:
    with pytest.raises(cwist_jq.InvalidParam, match="there is no handler"):
        Worker("redis://x", "q").run()


def test_what_exceptions_say() -> None:
    def of(error: BaseException) -> tuple[str, float | None, str | None]:
        outcome = outcome_of(error)
        return outcome.end, outcome.delay, outcome.reason

    assert of(ValueError("no")) == (NACK, None, "ValueError: no")
    assert of(Retry(5)) == (NACK, 5, "Retry: to be tried again")
    assert of(Retry(reason="busy")) == (NACK, None, "busy")
    assert of(Reject()) == (DEAD, None, "Reject: rejected")
    assert of(Reject("a\0b")) == (DEAD, None, "a\\x00b")
    assert of(Snooze(0.5)) == (RELEASE, 0.5, None)
    assert len((of(Reject("ä" * 5000))[2] or "").encode()) == 4096


def test_what_led_to_a_retry_is_its_reason() -> None:
    error = Retry(1)
    error.__cause__ = KeyError("customer")
    assert outcome_of(error).reason == "KeyError: 'customer'"


@pytest.mark.parametrize("kind", [Retry, Snooze])
@pytest.mark.parametrize("delay", [-1, float("nan"), "1", 31_536_001])
def test_delays_are_checked(kind: Any, delay: Any) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match="delay"):
        kind(delay)


def test_all_names_are_documented() -> None:
    for name in cwist_jq.worker.__all__:
        value = getattr(cwist_jq.worker, name)
        assert value.__doc__, name
        for member, method in inspect.getmembers(value, inspect.isfunction):
            if not member.startswith("_") and method.__module__.startswith("cwist_jq"):
                assert method.__doc__, f"{name}.{member}"


def test_asyncio_and_processes_are_imported_when_they_are_needed() -> None:
    program = "import sys, cwist_jq.worker; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    found = set(done.stdout.split())
    assert found.isdisjoint({"asyncio", "multiprocessing", "msgspec", "pydantic", "pickle"})
