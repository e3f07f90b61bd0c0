"""Turns among queues, without a server."""

from __future__ import annotations

import threading
from collections import Counter

from cwist_jq.worker.intake import Intake
from cwist_jq.worker.lane import Lane
from cwist_jq.worker.order import Strict, Weighted
from tests.waiting import Background


def _intake(count: int, *, slots: int = 10) -> tuple[Intake, Lane]:
    lane = Lane(slots, 1)
    return Intake(count, Strict(count), [lane]), lane


def test_strict_takes_the_first_that_may_have_jobs() -> None:
    order = Strict(3)
    assert order.first([1, 2]) == 1
    assert [order.rank(index) for index in range(order.ranks)] == [0, 1, 2]


def test_weights_are_kept_over_time() -> None:
    order = Weighted([5, 3, 2])
    taken: Counter[int] = Counter()
    for _ in range(100):
        index = order.first([0, 1, 2])
        order.came(index, 1)
        taken[index] += 1
    assert taken == {0: 50, 1: 30, 2: 20}


def test_a_queue_that_was_empty_makes_nothing_up() -> None:
    order = Weighted([1, 1])
    order.came(0, 1000)
    order.returned(1, [0, 1])
    taken: Counter[int] = Counter()
    for _ in range(10):
        index = order.first([0, 1])
        order.came(index, 1)
        taken[index] += 1
    assert taken == {0: 5, 1: 5}


def test_each_queue_has_its_share_of_the_room() -> None:
    order = Weighted([3, 1])
    assert order.share(0, [0, 1], 8) == 6
    assert order.share(1, [0, 1], 8) == 2
    assert order.share(1, [0, 1], 1) == 1
    assert order.share(1, [1], 8) == 8


def test_a_single_queue_is_asked_for_all_the_room() -> None:
    intake, lane = _intake(1)
    assert intake.turn(0) == (10, True)
    intake.came(0, [(lane, 4)])
    assert intake.turn(0) == (6, True)
    intake.came(0, [])
    assert intake.turn(0) == (6, True)


def test_a_later_queue_is_asked_when_the_earlier_ones_are_empty() -> None:
    intake, lane = _intake(2)
    later = Background(intake.turn, 1)
    assert intake.turn(0) == (10, False)
    assert later.running
    intake.came(0, [(lane, 1)])
    assert intake.turn(0) == (9, False)
    assert later.running
    intake.came(0, [])
    assert intake.turn(0) == (1, True)  # it is waited for
    assert later.result() == (9, False)


def test_without_room_nobody_is_asked() -> None:
    intake, lane = _intake(2, slots=1)
    assert intake.turn(0) == (1, False)
    intake.came(0, [])
    assert intake.turn(0) == (1, True)
    assert intake.turn(1) == (1, False)
    intake.came(1, [(lane, 1)])
    assert intake.awaited() == [0]
    turn = Background(intake.turn, 1)
    intake.came(0, [])  # its claim was ended
    waits = Background(intake.turn, 0)
    assert turn.running
    assert waits.running
    intake.settled(lane, 1)
    assert waits.result() == (1, False)
    intake.close()
    assert turn.result() is None


def test_quick_jobs_are_claimed_many_at_a_time() -> None:
    intake, lane = _intake(1, slots=1)
    lane.pace.note(0.0001)
    most = lane.room()
    assert intake.turn(0) == (most, True)
    intake.came(0, [(lane, most)])
    turn = Background(intake.turn, 0)
    intake.settled(lane, 10)
    assert turn.running
    intake.settled(lane, 300)
    assert turn.result() == (310, True)


def test_one_full_lane_is_enough() -> None:
    """The types of jobs are not known before they are claimed."""
    quick, slow = Lane(1, 1), Lane(2, 1)
    quick.pace.note(0.0001)
    intake = Intake(1, Strict(1), [quick, slow])
    assert intake.turn(0) == (2, True)
    intake.came(0, [(slow, 2)])
    turn = Background(intake.turn, 0)
    assert turn.running
    intake.settled(slow, 1)
    assert turn.result() == (1, True)


def test_the_end_is_told_once_nothing_is_held() -> None:
    intake, lane = _intake(1)
    told = threading.Event()
    intake.emptied = told.set
    intake.came(0, [(lane, 2)])
    intake.settled(lane, 2)
    assert not told.is_set()
    intake.came(0, [(lane, 2)])
    intake.close()
    intake.settled(lane, 1)
    assert not told.is_set()
    intake.settled(lane, 1)
    assert told.is_set()
