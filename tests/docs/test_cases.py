"""docs/cases.md is what the tests say, and no case that matters is without a test."""

from __future__ import annotations

import pytest

from tests import cases

FOUND = cases.tests()
SECTIONS = cases.read(FOUND)
ALL = [case for section in SECTIONS.values() for case in section]
#: Not shown yet, at least not on each engine; the page says why.
OPEN = {"R17"}


def test_the_page_is_up_to_date() -> None:
    written = cases.PAGE.read_text(encoding="utf-8")
    assert written == cases.render(SECTIONS), "run: python -m tests.cases"


@pytest.mark.parametrize("case", [c for c in ALL if c.grade in ("P0", "P1")], ids=lambda c: c.id)
def test_what_matters_has_a_test_on_each_engine(case: cases.Case) -> None:
    if case.id in OPEN:
        assert case.gap
        assert case.missing, f"{case.id} has its tests now: it is no longer open"
    else:
        assert case.missing == set()


def test_ids_are_unique_and_the_lists_hold_what_exists() -> None:
    ids = [case.id for case in ALL]
    assert len(set(ids)) == len(ids)
    assert set(ids) >= OPEN
    mentioned = {name for test in FOUND for name in test.ids}
    assert mentioned - set(ids) <= {"C11"}, "a docstring names a case that is not in the table"


def test_a_case_without_a_test_is_noticed() -> None:
    """And one that is shown on one of its two engines."""
    (lost,) = [case for case in cases.read([])["Batches"] if case.id == "B01"]
    assert lost.missing == {"any"}
    half = cases.Test("x.py", "test_x", frozenset({"B01"}), frozenset({"nats"}))
    (lost,) = [case for case in cases.read([half])["Batches"] if case.id == "B01"]
    assert lost.missing == {"redis"}
