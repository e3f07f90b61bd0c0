"""What a with statement does to a job, and a cut to a claim, on a pretended library."""

from __future__ import annotations

import copy
import logging
import pickle
import warnings
from typing import Any

import pytest

import cwist_jq
from cwist_jq import job as job_module
from cwist_jq import queue as queue_module
from cwist_jq.job import Job, jobs_of, reason_of
from cwist_jq.queue import Queue

SMALL = 4096


class Library:
    """Stands for cwist_jq._lib: notes what is asked of it."""

    SMALL = SMALL

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.settled = False
        self.fails: BaseException | None = None
        self.claims: list[Any] = []

    def _settle(self, *call: Any) -> None:
        if self.settled:
            raise cwist_jq.Closed("settled")
        self.settled = True
        self.calls.append(call)
        if self.fails is not None:
            raise self.fails

    def is_settled(self, batch: object, index: int) -> bool:
        return self.settled

    def ack(self, batch: object, index: int, queue: object) -> None:
        self._settle("ack")

    def nack(
        self,
        batch: object,
        index: int,
        queue: object,
        reason: bytes | None,
        delay_ms: int | None,
        *,
        dead: bool,
    ) -> None:
        self._settle("nack", reason, delay_ms, dead)

    def release(self, batch: object, index: int, queue: object, delay_ms: int) -> None:
        self._settle("release", delay_ms)

    def headers(self, batch: object, index: int) -> dict[str, str]:
        return {"traceparent": f"of {index}"}

    def renew(self, batch: object, index: int, queue: object) -> None:
        self.calls.append(("renew", index))

    def lease_lost(self, batch: object, index: int) -> bool:
        return index == 1

    def new_batch(self) -> str:
        return "batch"

    def claim(self, batch: object, queue: object, most: int, timeout_ms: int) -> bool:
        self.calls.append(("claim", most, timeout_ms))
        outcome = self.claims.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return bool(outcome)

    def describe(self, batch: object) -> tuple[list[str], bytes, list[int], list[int]]:
        if self.fails is not None:
            raise self.fails
        return ["1-0", "type", "2-0", ""], b"payload", [7, SMALL + 1], [2, 1]

    def describe_one(self, batch: object) -> tuple[str, str, bytes, int, int]:
        if self.fails is not None:
            raise self.fails
        return "1-0", "", b"payload", 7, 1

    def payload(self, batch: object, index: int) -> bytes:
        self.calls.append(("payload", index))
        return b"large"

    def lease_remaining(self, batch: object, index: int) -> float:
        return 1.5

    def abandon(self, batch: object, queue: object) -> None:
        self.calls.append(("abandon",))

    def enqueue(self, queue: object, payload: object, kind: bytes | None) -> str:
        self.calls.append(("enqueue", payload, kind))
        return "1"

    def enqueue_item(
        self, queue: object, payload: object, kind: bytes | None, extras: object
    ) -> str:
        self.calls.append(("enqueue_item", payload, kind, extras))
        return "2"

    def interrupt(self, queue: object) -> None:
        self.calls.append(("interrupt",))

    def close_queue(self, queue: object) -> None:
        pass


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    pretended = Library()
    monkeypatch.setattr(job_module, "_lib", pretended)
    monkeypatch.setattr(queue_module, "_lib", pretended)
    return pretended


@pytest.fixture
def queue(library: Library) -> Any:
    made = Queue(None, "emails")  # type: ignore[arg-type]
    made._handle = "handle"  # type: ignore[assignment]
    yield made
    made.close()


@pytest.fixture
def job(queue: Queue) -> Job:
    return jobs_of(queue, "batch")[0]  # type: ignore[arg-type]


@pytest.fixture
def large(queue: Queue) -> Job:
    """A job whose payload did not come with it."""
    return jobs_of(queue, "batch")[1]  # type: ignore[arg-type]


def test_clean_exit_acks(library: Library, job: Job) -> None:
    with job as same:
        assert same is job
    assert library.calls == [("ack",)]


def test_exception_nacks_with_the_reason(library: Library, job: Job) -> None:
    with pytest.raises(KeyError), job:
        raise KeyError("who")
    assert library.calls == [("nack", b"KeyError: 'who'", None, False)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_end_of_the_program_releases(
    library: Library, job: Job, kind: type[BaseException]
) -> None:
    with pytest.raises(kind), job:
        raise kind
    assert library.calls == [("release", 0)]


@pytest.mark.parametrize("how", ["ack", "nack", "release"])
@pytest.mark.parametrize("raises", [False, True])
def test_a_job_settled_inside_is_left_alone(
    library: Library, job: Job, how: str, *, raises: bool
) -> None:
    def block() -> None:
        with job:
            getattr(job, how)()
            if raises:
                raise RuntimeError("after")

    if raises:
        with pytest.raises(RuntimeError):
            block()
    else:
        block()
    assert [call[0] for call in library.calls] == [how]


def test_a_failed_ack_is_told(library: Library, job: Job) -> None:
    library.fails = cwist_jq.LeaseLost("given away")
    with pytest.raises(cwist_jq.LeaseLost), job:
        pass


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_failed_nack_does_not_hide_the_exception(
    library: Library, job: Job, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    library.fails = cwist_jq.ConnectionFailed("no server")
    with caplog.at_level(logging.WARNING, "cwist_jq"), pytest.raises(kind), job:
        raise kind
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "job 1-0 of queue emails" in caplog.text
    assert "no server" in caplog.text


def test_a_settled_job_cannot_be_entered(library: Library, job: Job) -> None:
    job.ack()
    with pytest.raises(cwist_jq.Closed, match="1-0"), job:
        pass


def test_nack_checks_the_reason_before_it_settles(library: Library, job: Job) -> None:
    for reason in ("x" * 4097, "é" * 2049, "a\0b"):
        with pytest.raises(cwist_jq.InvalidParam, match="reason"):
            job.nack(reason)
    with pytest.raises(cwist_jq.InvalidType):
        job.nack(5)  # type: ignore[arg-type]
    assert not library.settled
    job.nack("é" * 2048)
    assert library.calls == [("nack", ("é" * 2048).encode(), None, False)]


def test_nack_and_release_check_their_options_before_they_settle(
    library: Library, job: Job
) -> None:
    for delay in (-1, 31_536_000.001, float("nan")):
        with pytest.raises(cwist_jq.InvalidParam, match=r"delay is .*0 to 31536000 seconds"):
            job.nack(delay=delay)
        with pytest.raises(cwist_jq.InvalidParam, match=r"delay is .*0 to 31536000 seconds"):
            job.release(delay)
    for wrong in (None, "no", 0):
        with pytest.raises(cwist_jq.InvalidType, match="dead"):
            job.nack(dead=wrong)  # type: ignore[arg-type]
    assert not library.settled


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, (None, None, False)),
        ({"delay": 0}, (None, 0, False)),
        ({"delay": 1.5}, (None, 1500, False)),
        ({"reason": "no", "dead": True}, (b"no", None, True)),
    ],
)
def test_options_of_a_nack(
    library: Library, job: Job, options: dict[str, Any], told: tuple[Any, ...]
) -> None:
    """A delay of 0 is not the delay of the queue's policy."""
    job.nack(**options)
    assert library.calls == [("nack", *told)]


def test_a_job_is_put_off(library: Library, job: Job) -> None:
    job.release(0.25)
    assert library.calls == [("release", 250)]


def test_leases_are_kept_by_the_library(library: Library, job: Job, large: Job) -> None:
    job.renew()
    assert library.calls == [("renew", 0)]
    assert (job.lease_lost, large.lease_lost) == (False, True)


def test_headers_are_read_only(job: Job, large: Job) -> None:
    assert dict(job.headers) == {"traceparent": "of 0"}
    assert dict(large.headers) == {"traceparent": "of 1"}
    with pytest.raises(TypeError):
        job.headers["a"] = "b"  # type: ignore[index]


def test_reason_of() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert reason_of(ValueError()) == b"ValueError"
    assert reason_of(ValueError("a")) == b"ValueError: a"
    assert b"__str__ failed" in reason_of(Broken())
    assert reason_of(ValueError("a\0b \ud800")) == b"ValueError: a\\x00b \\ud800"
    long = reason_of(ValueError("é" * 2000))
    assert len(reason_of(ValueError("é" * 4000))) <= 4096
    assert len(long) == len("ValueError: ") + 4000
    assert long.decode().startswith("ValueError: éé")


def test_repr(job: Job) -> None:
    assert repr(job) == "<cwist_jq.Job '1-0' type='type' attempts=2>"


def test_what_came_with_the_job(job: Job, large: Job) -> None:
    assert (job.id, job.type, job.payload, job.attempts) == ("1-0", "type", b"payload", 2)
    assert (large.id, large.type, large.attempts) == ("2-0", None, 1)
    assert job.lease_remaining == 1.5


def test_a_large_payload_is_copied_once_when_it_is_read(library: Library, large: Job) -> None:
    assert library.calls == []
    assert large.payload is large.payload
    assert library.calls == [("payload", 1)]


@pytest.mark.parametrize("how", ["ack", "nack", "release"])
def test_a_large_payload_can_be_read_after_the_end(library: Library, large: Job, how: str) -> None:
    getattr(large, how)()
    assert [call[0] for call in library.calls] == ["payload", how]
    assert large.payload == b"large"
    assert len(library.calls) == 2


def test_a_payload_that_cannot_be_copied_leaves_the_job_claimed(
    library: Library, large: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(batch: object, index: int) -> bytes:
        raise MemoryError

    monkeypatch.setattr(library, "payload", no_memory)
    with pytest.raises(MemoryError):
        large.ack()
    assert not library.settled


def test_a_job_is_neither_pickled_nor_copied(job: Job) -> None:
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"job 1-0 cannot be pickled"):
            refused(job)


# ---- claims ----


def test_claim_without_a_job(library: Library, queue: Queue) -> None:
    library.claims = [False, False]
    assert queue.claim(1.5) is None
    assert queue.claim() is None
    assert library.calls == [("claim", 1, 1500), ("claim", 1, 2**64 - 1)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, cwist_jq.Interrupted, MemoryError])
def test_a_cut_claim_hands_back(library: Library, queue: Queue, kind: type[BaseException]) -> None:
    library.claims = [kind()]
    with pytest.raises(kind):
        queue.claim(0)
    assert library.calls[-1] == ("abandon",)


def test_a_signal_after_the_claim_hands_back(library: Library, queue: Queue) -> None:
    library.claims = [True]
    library.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        queue.claim(0)
    assert library.calls[-1] == ("abandon",)


def test_iteration_claims_only_when_asked(library: Library, queue: Queue) -> None:
    library.claims = [True, False, True, True]
    jobs = iter(queue)
    assert library.calls == []
    next(jobs)
    assert len(library.claims) == 3
    next(jobs)
    assert len(library.claims) == 1
    for _ in jobs:
        break
    assert library.claims == []
    for call in library.calls:
        assert call == ("claim", 1, 2**64 - 1)


def test_enqueue_passes_a_type_on(library: Library, queue: Queue) -> None:
    for kind in (None, "", "é"):
        assert queue.enqueue(b"x", type=kind) == "1"
    assert [call[2] for call in library.calls] == [None, None, "é".encode()]
    for wrong in (0, False, b""):
        with pytest.raises(cwist_jq.InvalidType, match="type"):
            queue.enqueue(b"x", type=wrong)  # type: ignore[arg-type]


def test_an_enqueue_without_options_takes_the_short_way(library: Library, queue: Queue) -> None:
    assert queue.enqueue(b"x", delay=0, dedupe_key=None, headers=None) == "1"
    assert library.calls == [("enqueue", b"x", None)]


@pytest.mark.parametrize(
    ("options", "extras"),
    [
        ({"delay": 0.0}, (0, None, b"", 0)),
        ({"delay": 1.5}, (1500, None, b"", 0)),
        ({"dedupe_key": "ü"}, (0, "ü".encode(), b"", 0)),
        ({"headers": {}}, (0, None, b"", 0)),
        ({"headers": {"a": "1", "B": ""}}, (0, None, b"a\x001\0B\0\0", 2)),
    ],
)
def test_options_of_an_enqueue(
    library: Library, queue: Queue, options: dict[str, Any], extras: tuple[Any, ...]
) -> None:
    assert queue.enqueue(b"x", type="t", **options) == "2"
    assert library.calls == [("enqueue_item", b"x", b"t", extras)]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay": None}, "delay"),
        ({"delay": -1}, "delay"),
        ({"delay": False}, "delay"),
        ({"delay": 365 * 86_400 + 1}, "delay"),
        ({"dedupe_key": b"k"}, "dedupe_key"),
        ({"dedupe_key": "a\0b"}, "dedupe_key"),
        ({"headers": ["a"]}, "headers"),
        ({"headers": {1: "a"}}, "a name of headers"),
        ({"headers": {"a": b"b"}}, r"headers\['a'\]"),
        ({"headers": {"a": "\0"}}, r"headers\['a'\]"),
        ({"headers": {f"n{n}": "" for n in range(65)}}, "headers has 65 entries.*up to 64"),
    ],
)
def test_a_wrong_option_of_an_enqueue_is_named(
    library: Library, queue: Queue, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match=field):
        queue.enqueue(b"x", **options)
    assert library.calls == []


def test_a_closed_queue_refuses_everything(library: Library, queue: Queue) -> None:
    queue.close()
    queue.close()
    assert queue.closed
    for call in (
        lambda: queue.enqueue(b""),
        lambda: queue.enqueue(b"", delay=1),
        lambda: queue.claim(0),
        queue.dead_count,
        queue.stats,
        queue.purge,
        queue.pause,
        queue.resume,
        queue.dead.page,
        lambda: list(queue.dead),
        lambda: queue.dead.read("1"),
        lambda: queue.dead.requeue("1"),
        queue.dead.requeue_all,
        lambda: queue.dead.purge("1"),
        queue.dead.purge_all,
        queue.interrupt,
        queue.__enter__,
        lambda: next(iter(queue)),
    ):
        with pytest.raises(cwist_jq.Closed, match="emails"):
            call()
    assert library.calls == []


def test_a_dropped_open_queue_is_closed_quietly(library: Library) -> None:
    """The connection is what has to be closed: `conn.queue("a").enqueue(b"")` is right."""
    dropped = Queue(None, "emails")  # type: ignore[arg-type]
    dropped._handle = "handle"  # type: ignore[assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropped.__del__()
    assert dropped.closed
