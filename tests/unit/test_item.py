"""Items: options of their own on the way through a batch, on a pretended library."""

from __future__ import annotations

from typing import Any

import pytest

import cwist_jq
from cwist_jq import Item
from cwist_jq import batch as batch_module
from cwist_jq.item import PLAIN, extras_of


class Library:
    """Stands for cwist_jq._lib: keeps the options that it was given."""

    BATCH_MAX = 1000

    def __init__(self) -> None:
        self.calls: list[tuple[list[bytes | None], list[Any]]] = []

    def view(self, payload: Any) -> Any:
        return memoryview(payload)

    def enqueue_apart(
        self,
        queue: object,
        payloads: list[Any],
        kinds: list[bytes | None],
        extras: list[Any],
        *,
        whole: bool,
    ) -> list[str]:
        self.calls.append((kinds, extras))
        return ["1"] * len(payloads)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    pretended = Library()
    monkeypatch.setattr(batch_module, "_lib", pretended)
    return pretended


def _store(*items: Any) -> None:
    batch_module.enqueue_many("handle", items, "t")  # type: ignore[arg-type]


def test_options_stay_with_their_item(library: Library) -> None:
    _store(b"a", Item(b"b", delay=2), Item(b"c", "u", dedupe_key="k", headers={"A": "1"}), b"d")
    assert library.calls == [
        (
            [b"t", b"t", b"u", b"t"],
            [PLAIN, (2000, None, b"", 0), (0, b"k", b"A\x001\0", 1), PLAIN],
        )
    ]


def test_items_without_options_bring_none(library: Library) -> None:
    _store(Item(b"a", "x"), Item(b"b"))
    assert library.calls == [([b"x", b"t"], [])]


def test_plain_is_what_no_options_are() -> None:
    assert extras_of(0, None, None) == extras_of(0.0, None, {}) == PLAIN


def test_a_wrong_option_names_its_item(library: Library) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match=r"items\[1\]: delay is -1") as caught:
        _store(Item(b"a"), Item(b"b", delay=-1), b"c")
    assert library.calls == []
    kinds = [type(result) for result in caught.value.results or []]
    assert kinds == [cwist_jq.NotSent, cwist_jq.InvalidParam, cwist_jq.NotSent]


def test_large_headers_count_towards_the_size_of_a_piece(library: Library) -> None:
    """B02: memory is bounded by the piece, whatever fills it."""
    big = {f"n{number}": "x" * 4096 for number in range(64)}
    _store(*[Item(b"", headers=big) for _ in range(100)])
    pieces = [len(kinds) for kinds, _ in library.calls]
    assert sum(pieces) == 100
    assert max(pieces) * 64 * 4096 <= batch_module.PIECE_BYTES


def test_repr_shows_no_content() -> None:
    item = Item(b"secret", "t", dedupe_key="secret", headers={"Auth": "secret"})
    assert "secret" not in repr(item)
