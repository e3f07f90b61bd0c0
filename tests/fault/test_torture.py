"""The torture for some seconds, and its checker with ledgers that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault.torture.checker import Report, check
from tests.fault.torture.jobs import DELIVERIES, number_of, payload
from tests.fault.torture.ledger import Event
from tests.fault.torture.run import torture


@pytest.mark.quiet
@pytest.mark.slow
def test_nothing_is_lost(engine: str, tmp_path: Path) -> None:
    """L01, L02, L03, L05, L08, L12, D01, D04, D08, R01, R02, R05, P03, X01: for seconds."""
    report = torture(engine, 5.0, 4, tmp_path / "run")
    assert report.violations == [], (tmp_path / "run" / "errors").read_text("utf-8")
    assert report.totals["jobs"] > 100
    assert report.totals["acked"] > 100
    assert report.totals["processes killed"] > 0


def test_a_payload_tells_whether_it_was_damaged() -> None:
    assert number_of(payload(7)) == 7
    assert number_of(payload(7)[:-1]) is None
    assert number_of(payload(7).replace(b"7", b"8", 1)) is None
    assert number_of(b"") is None


# ---- the checker ----

STORED = ["0.1 producer-1 try 1 plain", "0.2 producer-1 stored 1 a"]
CLAIMED = ["1.0 worker-1 claimed 1 a 1"]
ACKED = ["1.1 worker-1 begin ack a 1", "1.2 worker-1 done ack a 1"]


def checked(
    lines: list[str], *, engine: str = "redis", dead: list[tuple[str, int]] | None = None
) -> Report:
    events = []
    for line in lines:
        moment, who, kind, *words = line.split()
        events.append(Event(float(moment), who, kind, tuple(words)))
    return check(sorted(events, key=lambda event: event.moment), engine, dead or [], [])


def wrong(lines: list[str], **options: object) -> str:
    (text,) = checked(lines, **options).violations  # type: ignore[arg-type]
    return text


def test_a_good_run() -> None:
    report = checked([*STORED, *CLAIMED, *ACKED])
    assert report.violations == []
    assert report.totals["acked"] == report.totals["jobs"] == report.totals["deliveries"] == 1


def test_lost() -> None:
    assert wrong(STORED) == "job a (number 1) is lost"
    assert wrong([*STORED, *CLAIMED]) == "job a (number 1) is lost"
    failed = ["1.1 worker-1 begin ack a 1", "1.2 worker-1 failed ack a 1 LeaseLost"]
    assert wrong([*STORED, *CLAIMED, *failed]) == "job a (number 1) is lost"
    assert checked(STORED, dead=[("a", 1)]).violations == []


@pytest.mark.parametrize("end", ["", "1.2 worker-1 failed ack a 1 OutcomeUnknown"])
def test_an_ack_whose_outcome_nobody_knows(end: str) -> None:
    lines = [*STORED, *CLAIMED, "1.1 worker-1 begin ack a 1", *filter(None, [end])]
    assert checked(lines).violations == []


def test_stored_twice() -> None:
    twice = [*STORED, *CLAIMED, *ACKED, "2.0 worker-1 claimed 1 b 1"]
    assert wrong(twice).startswith("number 1 was stored 2 times")
    keyed = [line.replace("plain", "keyed") for line in twice]
    again = ["0.15 producer-1 unknown 1", "0.16 producer-1 try 1 keyed"]
    assert checked([*keyed, *again]).violations == []


def test_stored_although_refused() -> None:
    lines = ["0.1 producer-1 try 1 plain", "0.2 producer-1 refused 1 ConnectionFailed"]
    assert wrong([*lines, *CLAIMED, *ACKED]).endswith("its enqueue said it is not")


def test_two_dead_letters() -> None:
    assert wrong(STORED, dead=[("a", 1), ("a", 1)]) == "job a has 2 dead letters"


def test_acked_and_dead() -> None:
    lines = [*STORED, *CLAIMED, *ACKED]
    assert wrong(lines, dead=[("a", 1)]) == "job a was acked, and is dead"
    killed = [*lines, "2.0 chaos server-killed"]
    assert wrong(killed, dead=[("a", 1)]) == "job a was acked, and is dead"
    report = checked(killed, dead=[("a", 1)], engine="nats")
    assert report.violations == []
    assert report.totals["acks forgotten by a killed server"] == 1


def test_too_many_attempts() -> None:
    lines = [*STORED, f"1.0 worker-1 claimed 1 a {DELIVERIES + 1}"]
    assert "attempts" in wrong([*lines, f"1.1 worker-1 begin ack a {DELIVERIES + 1}"])


def test_a_damaged_payload() -> None:
    lines = [*STORED, "1.0 worker-1 claimed damaged a 1", *ACKED]
    assert wrong(lines) == "the payload of a is damaged"


REPEATED = [*STORED, *CLAIMED, "1.5 worker-2 claimed 1 a 2", "1.6 worker-2 begin ack a 2"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1.1 worker-1 begin nack a 1", "handed back"),
        ("1.1 chaos killed worker-1", "its worker was killed or frozen"),
        ("1.1 mender-1 requeue a", "requeued"),
        ("1.1 mender-1 requeue-all", "requeued"),
        ("1.1 worker-1 failed ack a 1 ConnectionFailed", "a broken connection"),
        ("1.1 chaos server-killed", "a killed server"),
    ],
)
def test_a_repeat_is_explained(line: str, reason: str) -> None:
    assert "nothing explains" in wrong(REPEATED)
    report = checked([*REPEATED, line])
    assert report.violations == []
    assert report.repeats == {reason: 1}


def test_a_lease_that_is_over_explains_a_repeat() -> None:
    late = [line.replace("1.5 ", "1.9 ").replace("1.6 ", "2.0 ") for line in REPEATED]
    assert checked(late).repeats == {"its lease was over": 1}
    assert "nothing explains" in wrong([*late, "1.4 worker-1 done extend a 1"])


def test_a_restart_of_nats_ends_a_lease_early() -> None:
    both = [*REPEATED, "1.7 worker-1 begin ack a 1", "1.8 worker-1 done ack a 1"]
    restarted = [*both, "1.2 chaos server-stopped"]
    assert "nothing explains" in wrong(both, engine="nats")
    assert "nothing explains" in wrong(restarted)
    reason = "a lease that a restarted server ended early"
    assert checked(restarted, engine="nats").repeats == {reason: 1}


def test_an_acked_job_does_not_come_again() -> None:
    lines = [*STORED, *CLAIMED, *ACKED, "9.0 worker-2 claimed 1 a 2", "9.1 worker-2 begin ack a 2"]
    assert "nothing explains" in wrong(lines)
    killed = [*lines, "2.0 chaos server-killed"]
    assert "nothing explains" in wrong(killed)
    report = checked(killed, engine="nats")
    assert report.repeats == {"an ack that a killed server forgot": 1}
