"""The lines of waiting jobs, and the pace at which they may grow; without a server."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cwist_jq.worker import lane as lanes
from cwist_jq.worker.lane import Lane
from cwist_jq.worker.pace import MOST_BYTES, MOST_JOBS, Pace
from cwist_jq.worker.ready import Ready, Seat
from tests.waiting import Background, eventually


class _Job:
    """Stands for a job: only its lease and size are looked at."""

    def __init__(self, lease: float = 30.0) -> None:
        self.lease_remaining = lease


def _jobs(count: int) -> list[Any]:
    return [_Job() for _ in range(count)]


def test_lines_are_served_in_their_order() -> None:
    ready = Ready(2)
    first, second, third = _jobs(3)
    ready.put([second, third], 1)
    ready.put([first], 0)
    assert len(ready) == 3
    assert ready.first() == first
    assert [ready.pop() for _ in range(4)] == [first, second, third, None]
    assert ready.first() is None
    ready.put_back(third)
    ready.put([first], 0)
    assert ready.clear() == [third, first]


def test_a_sleeper_is_woken() -> None:
    ready, seat = Ready(1), Seat()
    taken = Background(ready.take, seat)
    eventually(lambda: ready._sleepers)
    (job,) = _jobs(1)
    ready.put([job])
    assert ready.wake(2) == 1
    assert taken.result() is job
    assert seat.job is job


def test_closing_sends_all_home() -> None:
    ready = Ready(1)
    takers = [Background(ready.take, Seat()) for _ in range(3)]
    eventually(lambda: len(ready._sleepers) == 3)
    ready.close()
    assert [taker.result() for taker in takers] == [None] * 3
    ready.put(_jobs(1))
    assert ready.take(Seat()) is None


def test_patience_ends() -> None:
    ready, seat = Ready(1), Seat()
    assert ready.take(seat, 0.01) is None
    assert ready._sleepers == []
    (job,) = _jobs(1)
    ready.put([job])
    assert ready.wake(1) == 0
    assert ready.take(seat, 0.01) is job


def test_no_job_is_lost_or_doubled_among_threads() -> None:
    ready = Ready(1)
    jobs = _jobs(20_000)
    taken: list[Any] = []

    def work() -> None:
        seat = Seat()
        while (job := ready.take(seat)) is not None:
            taken.append(job)

    takers = [Background(work) for _ in range(8)]
    for start in range(0, len(jobs), 7):
        piece = jobs[start : start + 7]
        ready.put(piece)
        ready.wake(len(piece))
    eventually(lambda: len(taken) == len(jobs))
    assert set(map(id, taken)) == set(map(id, jobs))
    eventually(lambda: len(ready._sleepers) == 8)  # and each sleeps, rather than being forgotten
    ready.close()
    for taker in takers:
        taker.result()
    assert threading.active_count() < 50


def test_nothing_waits_before_anything_is_known() -> None:
    pace = Pace()
    assert pace.ahead(8) == 0


@pytest.mark.parametrize(
    ("seconds", "slots", "ahead"),
    [(0.0, 1, MOST_JOBS), (0.001, 1, 50), (0.001, 4, 200), (0.05, 1, 1), (0.06, 1, 0), (60, 8, 0)],
)
def test_as_many_wait_as_start_soon(seconds: float, slots: int, ahead: int) -> None:
    pace = Pace()
    pace.note(seconds)
    assert pace.ahead(slots) == ahead


def test_a_short_lease_lets_fewer_wait() -> None:
    pace = Pace()
    pace.note(0.001)
    pace.came([_Job(lease=0.1)])  # type: ignore[list-item]
    assert pace.ahead(1) == 10


def test_one_slow_job_is_noticed_and_forgotten() -> None:
    pace = Pace()
    pace.note(0.0001)
    pace.note(10.0)
    assert pace.ahead(1) == 0
    for _ in range(100):
        pace.note(0.0001)
    assert pace.ahead(1) > 100


def test_large_payloads_let_fewer_wait() -> None:
    pace = Pace()
    pace.note(0.0)
    pace._bytes = MOST_BYTES / 4
    assert pace.ahead(1) == 4


def test_what_waits_too_long_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(lanes, "monotonic", lambda: now[0])
    lane = Lane(1, 1)
    lane.pace.note(0.0001)
    first, second = _jobs(2)
    lane.ready.put([first, second])
    assert lane.stale() == []
    now[0] += 0.9
    assert lane.stale() == []
    lane.ready.pop()  # there is progress
    now[0] += 0.9
    assert lane.stale() == []
    now[0] += 1.1
    assert lane.stale() == [second]
    assert lane.pace.ahead(1) == 0
