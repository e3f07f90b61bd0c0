"""Dead letters as Python objects, on a pretended library."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import cwist_jq
from cwist_jq import dead as dead_module
from cwist_jq.dead import DeadLetters
from cwist_jq.queue import Queue


def _told(job_id: str, **changes: Any) -> tuple[Any, ...]:
    letter = {
        "id": job_id,
        "type": "mail",
        "payload": None,
        "size": 7,
        "cause": "nacked",
        "reason": "no",
        "attempts": 3,
        "first_ms": 1_700_000_000_123,
        "died_ms": 1_700_000_060_456,
        "consumer": "w",
        "headers": {"A": "1"},
    }
    return tuple({**letter, **changes}.values())


class Library:
    """Stands for cwist_jq._lib_upkeep: has three pages."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def dead_list(
        self, queue: object, most: int, kind: Any, after: Any, *, oldest_first: bool
    ) -> tuple[list[Any], str | None]:
        self.calls.append((most, kind, after, oldest_first))
        page = 0 if after is None else int(after)
        letters = [_told(f"{page}-{number}") for number in range(2)]
        return letters, None if page == 2 else str(page + 1)

    def dead_read(self, queue: object, job_id: bytes) -> tuple[Any, ...]:
        return _told(job_id.decode(), payload=b"payload", first_ms=0, died_ms=2**63)

    def dead_purge_all(self, queue: object, kind: Any, older_than_ms: int) -> int:
        self.calls.append((kind, older_than_ms))
        return 5


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    pretended = Library()
    monkeypatch.setattr(dead_module, "_lib_upkeep", pretended)
    return pretended


@pytest.fixture
def dead(library: Library, monkeypatch: pytest.MonkeyPatch) -> DeadLetters:
    queue = Queue(None, "emails")  # type: ignore[arg-type]
    monkeypatch.setattr(Queue, "_live", lambda self: "handle")
    return queue.dead


def test_iteration_reads_page_after_page(library: Library, dead: DeadLetters) -> None:
    ids = [letter.id for letter in dead]
    assert ids == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    assert [call[2] for call in library.calls] == [None, b"1", b"2"]


def test_a_page_is_read_only_when_the_loop_comes_to_it(library: Library, dead: DeadLetters) -> None:
    letters = iter(dead)
    assert library.calls == []
    next(letters)
    next(letters)
    assert len(library.calls) == 1


def test_what_a_letter_says(dead: DeadLetters) -> None:
    letter = dead.page()[0]
    assert (letter.id, letter.type, letter.payload, letter.size) == ("0-0", "mail", None, 7)
    assert (letter.cause, letter.reason, letter.attempts) == ("nacked", "no", 3)
    assert letter.consumer == "w"
    assert dict(letter.headers) == {"A": "1"}
    utc = dt.UTC
    assert letter.first_time == dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, utc)
    assert letter.death_time == dt.datetime(2023, 11, 14, 22, 14, 20, 456_000, utc)
    with pytest.raises(AttributeError):
        letter.cause = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        letter.headers["A"] = "2"  # type: ignore[index]
    assert hash(letter) == hash(dead.page()[0])


def test_a_time_that_is_none_is_not_known(dead: DeadLetters) -> None:
    letter = dead.read("7")
    assert (letter.id, letter.payload) == ("7", b"payload")
    assert letter.first_time is None
    assert letter.death_time is None


def test_repr_shows_neither_payload_nor_headers(dead: DeadLetters) -> None:
    shown = repr(dead.read("7"))
    assert "payload" not in shown
    assert "headers" not in shown
    assert repr(dead) == "<cwist_jq.DeadLetters of 'emails'>"


def test_arguments_of_a_page(library: Library, dead: DeadLetters) -> None:
    page = dead.page(7, oldest_first=True, type="", after="2")
    assert library.calls == [(7, b"", b"2", True)]
    assert page.mark is None
    for wrong in (0, 1001, -1):
        with pytest.raises(cwist_jq.InvalidParam, match="most is"):
            dead.page(wrong)
    with pytest.raises(cwist_jq.InvalidType, match="oldest_first"):
        dead.page(oldest_first="yes")  # type: ignore[arg-type]
    with pytest.raises(cwist_jq.InvalidType, match="id is a int"):
        dead.read(7)  # type: ignore[arg-type]


def test_age(library: Library, dead: DeadLetters) -> None:
    assert dead.purge_all() == 5
    assert dead.purge_all("mail", dt.timedelta(days=30)) == 5
    assert library.calls == [(None, 0), (b"mail", 30 * 86_400_000)]
    with pytest.raises(cwist_jq.InvalidParam, match="older_than is -1"):
        dead.purge_all(older_than=-1)
