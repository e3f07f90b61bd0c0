"""Batches: how they are cut, what they raise, and what a cut to them leaves behind.

On a pretended library. tests/conformance has what the real one does with them.
"""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import Any

import pytest

import cwist_jq
from cwist_jq import Item, _lib
from cwist_jq import batch as batch_module
from cwist_jq import job as job_module
from cwist_jq import queue as queue_module
from cwist_jq._native import ffi
from cwist_jq.job import Job, jobs_of
from cwist_jq.queue import Queue

FOR_EVER = 2**64 - 1


class Library:
    """Stands for cwist_jq._lib: does as it is told, and notes what is asked of it."""

    SMALL = 4096
    BATCH_MAX = 1000

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.pieces: list[list[bytes]] = []
        self.kinds: list[list[bytes | None]] = []
        self.extras: list[list[Any]] = []
        self.stored = 0
        self.fails: dict[int, BaseException] = {}  # by the number of the call
        self.ready: list[int] = []  # how many jobs each claim brings
        self.acked: list[int] = []
        self.results: list[cwist_jq.Error | None] = []
        self.cut: cwist_jq.Error | None = None

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        failure = self.fails.get(len(self.calls))
        if failure is not None:
            raise failure

    def view(self, payload: Any) -> bytes:
        memory: Any = _lib.view(payload)
        return ffi.buffer(memory, len(memory))[:]

    def enqueue_joined(
        self, queue: object, payloads: list[bytes], sizes: list[int], kind: Any, *, whole: bool
    ) -> list[str]:
        assert sizes == [len(payload) for payload in payloads]
        return self._store("joined", payloads, [kind] * len(payloads), whole=whole)

    def enqueue_apart(
        self,
        queue: object,
        payloads: list[bytes],
        kinds: list[Any],
        extras: list[Any],
        *,
        whole: bool,
    ) -> list[str]:
        self.extras.append(extras)
        return self._store("apart", payloads, kinds, whole=whole)

    def _store(
        self, how: str, payloads: list[bytes], kinds: list[Any], *, whole: bool
    ) -> list[str]:
        self._call(how, len(payloads), whole)
        self.pieces.append(payloads)
        self.kinds.append(kinds)
        first = self.stored
        self.stored += len(payloads)
        return [str(number) for number in range(first, self.stored)]

    def new_batch(self) -> list[int]:
        return []

    def claim(self, batch: list[int], queue: object, most: int, timeout_ms: int) -> bool:
        self._call("claim", most, timeout_ms)
        batch[:] = [self.ready.pop(0)]
        return batch[0] != 0

    def ack_and_poll(
        self, claimed: list[int], queue: object, most: int, batches: list[Any], indices: list[int]
    ) -> tuple[bool, list[Any], Any]:
        self._call("ack_and_poll", most, len(indices))
        self.acked += indices
        claimed[:] = [0 if self.cut else self.ready.pop(0)]
        results = self.results or [None] * len(indices)
        return claimed[0] != 0, results, self.cut

    def describe(self, batch: list[int]) -> tuple[list[str], bytes, list[int], list[int]]:
        count = batch[0]
        texts = [text for number in range(count) for text in (str(number), "type")]
        return texts, b"x" * count, [1] * count, [1] * count

    def ack_many(self, queue: object, batches: list[Any], indices: list[int]) -> None:
        self._call("ack_many", len(indices))
        self.acked += indices

    nack_many = release_many = ack_many

    def abandon(self, batch: object, queue: object) -> None:
        self.calls.append(("abandon",))

    def close_queue(self, queue: object) -> None:
        pass


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    pretended = Library()
    for module in (batch_module, job_module, queue_module):
        monkeypatch.setattr(module, "_lib", pretended)
    return pretended


@pytest.fixture
def queue(library: Library) -> Iterator[Queue]:
    made = Queue(None, "emails")  # type: ignore[arg-type]
    made._handle = "handle"  # type: ignore[assignment]
    yield made
    made.close()


def jobs(queue: Queue, count: int) -> list[Job]:
    return jobs_of(queue, [count])  # type: ignore[arg-type]


# ---- enqueue ----


def test_plain_bytes_go_joined_with_one_type(library: Library, queue: Queue) -> None:
    assert queue.enqueue_many([b"a", b"", b"ccc"], type="é") == ["0", "1", "2"]
    assert library.calls == [("joined", 3, False)]
    assert library.pieces == [[b"a", b"", b"ccc"]]
    assert library.kinds == [["é".encode()] * 3]


def test_other_buffers_and_items_go_apart(library: Library, queue: Queue) -> None:
    numbers = array.array("H", [1, 2])
    queue.enqueue_many(
        [b"a", bytearray(b"b"), numbers, Item(b"c"), Item(memoryview(b"d"), "own"), Item(b"e", "")],
        type="common",
    )
    assert library.calls == [("apart", 6, False)]
    assert library.pieces == [[b"a", b"b", numbers.tobytes(), b"c", b"d", b"e"]]
    assert library.kinds == [[b"common"] * 4 + [b"own", None]]


def test_large_payloads_are_not_copied_together(library: Library, queue: Queue) -> None:
    queue.enqueue_many([b"x" * 600_000] * 2)
    assert library.calls == [("apart", 2, False)]


@pytest.mark.parametrize("make", [list, tuple, iter])
def test_many_are_cut_in_pieces(library: Library, queue: Queue, make: Any) -> None:
    ids = queue.enqueue_many(make([b"x"] * 2500))
    assert ids == [str(number) for number in range(2500)]
    assert [call[1] for call in library.calls] == [1000, 1000, 500]


def test_pieces_are_bounded_in_bytes(library: Library, queue: Queue) -> None:
    large = b"x" * (3 << 20)
    queue.enqueue_many([large, Item(large), bytearray(large), memoryview(large), b"y"])
    assert [call[1] for call in library.calls] == [2, 3]
    library.calls.clear()
    queue.enqueue_many([b"x" * (9 << 20), b"y", b"x" * (9 << 20)])
    assert [call[1] for call in library.calls] == [1, 1, 1]


def test_an_iterator_is_taken_a_piece_at_a_time(library: Library, queue: Queue) -> None:
    taken = 0

    def payloads() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(3000):
            taken += 1
            yield b"x"

    library.fails[2] = cwist_jq.ConnectionFailed("no server")
    with pytest.raises(cwist_jq.ConnectionFailed) as caught:
        queue.enqueue_many(payloads())
    assert taken <= 2001
    assert caught.value.results is not None
    assert caught.value.results[:1000] == [str(number) for number in range(1000)]


def test_nothing_that_was_stored_is_forgotten(library: Library, queue: Queue) -> None:
    broken = cwist_jq.OutcomeUnknown("the answer was lost")
    broken.results = ["1000", cwist_jq.OutcomeUnknown("lost")]
    library.fails[2] = broken
    with pytest.raises(cwist_jq.OutcomeUnknown) as caught:
        queue.enqueue_many([b"x"] * 1500)
    results = caught.value.results
    assert results is not None
    assert len(results) == 1500
    assert results[:1001] == [str(number) for number in range(1001)]
    assert type(results[1001]) is cwist_jq.OutcomeUnknown
    assert {type(result) for result in results[1002:]} == {cwist_jq.NotSent}


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ("text", cwist_jq.InvalidType),
        (Item("text"), cwist_jq.InvalidType),  # type: ignore[arg-type]
        (Item(b"", 5), cwist_jq.InvalidType),  # type: ignore[arg-type]
        (Item(b"", "a\0b"), cwist_jq.InvalidParam),
    ],
)
@pytest.mark.parametrize("how", ["enqueue_many", "enqueue_all"])
def test_a_wrong_item_is_named_and_nothing_is_sent(
    library: Library, queue: Queue, wrong: Any, kind: type, how: str
) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match=r"^items\[1\]: ") as caught:
        getattr(queue, how)([b"a", wrong, b"c"])
    assert library.calls == []
    results = caught.value.results or []
    assert [type(result) for result in results] == [cwist_jq.NotSent, kind, cwist_jq.NotSent]
    assert results[1] is not caught.value  # no cycle of references


def test_what_the_iterable_raises_goes_through(library: Library, queue: Queue) -> None:
    def payloads() -> Iterator[bytes]:
        yield b"x"
        raise cwist_jq.Closed("of another queue")

    with pytest.raises(cwist_jq.Closed) as caught:
        queue.enqueue_many(payloads())
    assert caught.value.results is None
    with pytest.raises(TypeError):
        queue.enqueue_many(5)  # type: ignore[arg-type]
    assert library.calls == []


def test_all_or_none_is_one_piece(library: Library, queue: Queue) -> None:
    assert len(queue.enqueue_all(iter([b"x"] * 1000))) == 1000
    queue.enqueue_all([b"x" * (9 << 20)] * 2)
    assert library.calls == [("joined", 1000, True), ("apart", 2, True)]
    with pytest.raises(cwist_jq.InvalidParam, match="up to 1000"):
        queue.enqueue_all([b"x"] * 1001)
    assert len(library.calls) == 2


def test_nothing_to_do(library: Library, queue: Queue) -> None:
    assert queue.enqueue_many([]) == queue.enqueue_all(iter(())) == []
    queue.ack_many([])
    queue.nack_many(())
    queue.release_many(iter([]))
    assert library.calls == []


def test_the_type_of_the_call_is_checked_first(library: Library, queue: Queue) -> None:
    for wrong in (0, b""):
        with pytest.raises(cwist_jq.InvalidType, match="type"):
            queue.enqueue_many([], type=wrong)  # type: ignore[arg-type]


def test_an_item_shows_no_payload() -> None:
    assert repr(Item(b"secret", "a")) == "<cwist_jq.Item type='a' payload=bytes>"


# ---- claims ----


def test_claim_many(library: Library, queue: Queue) -> None:
    library.ready = [3, 0]
    got = queue.claim_many(100, 1.5)
    assert [(job.id, job.type, job.payload) for job in got] == [
        (str(number), "type", b"x") for number in range(3)
    ]
    assert queue.claim_many(1) == []
    assert library.calls == [("claim", 100, 1500), ("claim", 1, FOR_EVER)]


@pytest.mark.parametrize("n", [0, -1, 1001, 2**64, True, 5.0, "5", None])
def test_how_many_is_checked(library: Library, queue: Queue, n: Any) -> None:
    calls: list[Any] = [lambda: queue.claim_many(n), lambda: queue.ack_and_claim([], n)]
    for call in calls:
        with pytest.raises(cwist_jq.InvalidParam, match=r"n is .*1 to 1000"):
            call()
    assert library.calls == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, cwist_jq.Interrupted, MemoryError])
@pytest.mark.parametrize("place", ["claim", "describe"])
def test_a_cut_claim_hands_back(
    library: Library,
    queue: Queue,
    kind: type[BaseException],
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(*arguments: Any) -> None:
        raise kind

    done = jobs(queue, 1)
    monkeypatch.setattr(library, place, cut)
    library.ready = [3]
    with pytest.raises(kind):
        queue.claim_many(10, 0)
    assert library.calls[-1] == ("abandon",)
    library.calls.clear()
    library.ready = [0, 3]
    with pytest.raises(kind) as caught:
        queue.ack_and_claim(done, 10, 1.0)
    assert library.calls[-1] == ("abandon",)
    if isinstance(caught.value, cwist_jq.Error):
        assert caught.value.results == [None]
        assert caught.value.claimed == ()


# ---- settle ----


@pytest.mark.parametrize("how", ["ack_many", "nack_many", "release_many"])
def test_settled_in_pieces_from_any_iterable(library: Library, queue: Queue, how: str) -> None:
    done = jobs(queue, 2001)
    getattr(queue, how)(iter(done))
    assert [call[1] for call in library.calls] == [1000, 1000, 1]
    assert library.acked == list(range(2001))


def test_the_first_failure_is_raised_with_all_results(library: Library, queue: Queue) -> None:
    lost, closed = cwist_jq.LeaseLost("first"), cwist_jq.Closed("second")
    lost.results = [*[None] * 999, cwist_jq.LeaseLost("first")]
    closed.results = [cwist_jq.Closed("second")] * 1000
    library.fails = {1: lost, 2: closed}
    with pytest.raises(cwist_jq.LeaseLost) as caught:
        queue.ack_many(jobs(queue, 2500))
    results = caught.value.results
    assert results is not None
    assert [type(result) for result in results] == (
        [type(None)] * 999 + [cwist_jq.LeaseLost] + [cwist_jq.Closed] * 1000 + [type(None)] * 500
    )


def test_texts_name_the_place_among_all(library: Library, queue: Queue) -> None:
    """The library counts in its piece; the caller counts in what it gave."""
    wrong: list[Any] = [b"x"] * 2000
    wrong[1500] = "text"
    with pytest.raises(cwist_jq.InvalidType, match=r"^items\[1500\]: ") as caught:
        queue.enqueue_many(wrong)
    assert str((caught.value.results or [])[1500]).startswith("items[1500]: ")

    lost = cwist_jq.LeaseLost("ack_many: jobs[200]: lost")
    lost.results = [*[None] * 200, lost.again(), *[None] * 300]
    library.calls.clear()
    library.fails = {2: lost}
    with pytest.raises(cwist_jq.LeaseLost, match=r"^ack_many: jobs\[1200\]: lost$") as told:
        queue.ack_many(jobs(queue, 1501))
    assert str((told.value.results or [])[1200]) == "ack_many: jobs[1200]: lost"

    alone = cwist_jq.Closed("settled before")
    alone.results = [alone.again()]
    library.calls.clear()
    library.fails = {2: alone}
    with pytest.raises(cwist_jq.Closed, match=r"^jobs\[1000\]: settled before$"):
        queue.ack_many(jobs(queue, 1001))


def test_what_is_no_job_is_refused_before_anything_is_sent(library: Library, queue: Queue) -> None:
    wrong: Any = [*jobs(queue, 1), b"x"]
    for call in (lambda: queue.ack_many(wrong), lambda: queue.ack_and_claim(wrong, 1)):
        with pytest.raises(cwist_jq.InvalidType, match=r"jobs\[1\] is a bytes"):
            call()
    assert library.calls == []


# ---- ack and claim ----


def test_ack_and_claim(library: Library, queue: Queue) -> None:
    library.ready = [2]
    assert len(queue.ack_and_claim(jobs(queue, 3), 100)) == 2
    assert library.calls == [("ack_and_poll", 100, 3)]


def test_it_waits_when_nothing_is_ready(library: Library, queue: Queue) -> None:
    library.ready = [0, 2, 0, 0]
    assert len(queue.ack_and_claim(jobs(queue, 1), 5)) == 2
    assert library.calls == [("ack_and_poll", 5, 1), ("claim", 5, FOR_EVER)]
    library.calls.clear()
    assert queue.ack_and_claim(jobs(queue, 1), 5, 10.0) == []
    assert 9000 < library.calls[1][2] <= 10_000


def test_it_does_not_wait_when_told_so(library: Library, queue: Queue) -> None:
    library.ready = [0]
    assert queue.ack_and_claim(jobs(queue, 1), 5, 0) == []
    assert library.calls == [("ack_and_poll", 5, 1)]


def test_without_jobs_it_is_a_claim(library: Library, queue: Queue) -> None:
    library.ready = [1, 0]
    assert len(queue.ack_and_claim([], 5, 1)) == 1
    assert queue.ack_and_claim([], 5, 0) == []
    assert [call[0] for call in library.calls] == ["claim", "claim"]


def test_more_acks_than_a_piece(library: Library, queue: Queue) -> None:
    library.ready = [1]
    assert len(queue.ack_and_claim(jobs(queue, 2000), 5, 0)) == 1
    assert library.calls == [("ack_many", 1000), ("ack_and_poll", 5, 1000)]


def test_failed_acks_are_told_with_what_was_claimed(library: Library, queue: Queue) -> None:
    library.ready = [2, 0]
    library.results = [None, cwist_jq.LeaseLost("given away"), cwist_jq.Closed("settled")]
    for claimed in (2, 0):  # and when nothing came, nothing more is waited for
        with pytest.raises(cwist_jq.LeaseLost, match="given away") as caught:
            queue.ack_and_claim(jobs(queue, 3), 100)
        assert caught.value.results == library.results
        assert len(caught.value.claimed) == claimed
    assert [call[0] for call in library.calls] == ["ack_and_poll"] * 2


def test_a_failed_early_piece_is_told_too(library: Library, queue: Queue) -> None:
    lost = cwist_jq.LeaseLost("first")
    lost.results = [cwist_jq.LeaseLost("first"), *[None] * 999]
    library.fails = {1: lost}
    library.ready = [3]
    with pytest.raises(cwist_jq.LeaseLost) as caught:
        queue.ack_and_claim(jobs(queue, 1001), 100)
    assert len(caught.value.results or ()) == 1001
    assert len(caught.value.claimed) == 3


def test_a_claim_that_fails_behind_the_acks(library: Library, queue: Queue) -> None:
    library.cut = cwist_jq.ConnectionFailed("no server")
    with pytest.raises(cwist_jq.ConnectionFailed) as caught:
        queue.ack_and_claim(jobs(queue, 2), 100)
    assert caught.value.results == [None, None]
    assert list(caught.value.claimed) == []
    assert library.calls[-1] == ("abandon",)


# ---- errors ----


def test_another_error_of_the_same_kind() -> None:
    error = cwist_jq.Error("what failed")
    error.code = -99
    error.results = ["1"]
    again = error.again()
    assert (type(again), again.text, again.code) == (cwist_jq.Error, "what failed", -99)
    assert again.results is None
