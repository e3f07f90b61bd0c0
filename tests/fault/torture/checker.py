"""Reads the ledger of a run: what must hold, what happened, what explains repeats."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.fault.torture.jobs import DELIVERIES, VISIBILITY
from tests.fault.torture.ledger import Event

__all__ = ["Delivery", "Report", "check"]

_EARLY_END = "a lease that a restarted server ended early"
_LATE_NOTE = "noted late by a worker that was frozen"

#: The lease begins on the server before its claim is noted, by as much as a busy machine needs.
_EARLY = 0.2
#: What a server that is killed may have forgotten of acks, counts and nacks: so many seconds.
FORGETS = {"redis": 0.0, "nats": 15.0}
#: Engines that keep the moment of a delivery by the whole second: a restart ends leases early.
COARSE = {"nats"}


@dataclass
class Delivery:
    """One claim of one job, and what its worker did."""

    moment: float
    who: str
    job_id: str
    attempts: int
    #: What was begun, done or failed, with its moment: ("done", "ack", 12.5).
    steps: list[tuple[str, str, float]] = field(default_factory=list)

    #: An ack was answered with OutcomeUnknown.
    unknown: bool = False

    def when(self, kind: str, what: str) -> float | None:
        """The moment of its last step of that kind."""
        return max((at for *step, at in self.steps if step == [kind, what]), default=None)

    def acked_at(self) -> float | None:
        """When the server confirmed an ack; None when it did not."""
        return self.when("done", "ack")

    def may_be_acked(self) -> bool:
        """Whether an ack was confirmed, or begun with an outcome that nobody knows."""
        begun, failed = self.when("begin", "ack"), self.when("failed", "ack")
        return self.acked_at() is not None or (begun is not None and failed is None) or self.unknown


@dataclass
class Report:
    """What a run was."""

    totals: Counter[str] = field(default_factory=Counter)
    #: Why jobs came more than once.
    repeats: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


class _Run:
    """The ledger, sorted by what the checks ask for."""

    def __init__(self, events: Sequence[Event], engine: str) -> None:
        self.forgets = FORGETS[engine]
        self.coarse = engine in COARSE
        self.tries: Counter[int] = Counter()
        self.keyed: set[int] = set()
        self.stored: dict[str, int] = {}
        self.refused: set[int] = set()
        self.maybe: set[int] = set()
        self.numbers: dict[str, int] = {}
        self.deliveries: dict[str, list[Delivery]] = defaultdict(list)
        self.damaged: list[str] = []
        self.hit: dict[str, list[float]] = defaultdict(list)
        self.frozen: dict[str, list[float]] = defaultdict(list)
        self.server_killed: list[float] = []
        self.restarted: list[float] = []
        self.requeued: dict[str, list[float]] = defaultdict(list)
        self.requeued_all: list[float] = []
        self.counts: Counter[str] = Counter(event.kind for event in events)
        self._last: dict[tuple[str, str, str], Delivery] = {}
        for event in events:
            read = getattr(self, f"_read_{event.kind.replace('-', '_')}", None)
            if read is not None:
                read(event)

    def _read_try(self, event: Event) -> None:
        number = int(event.words[0])
        self.tries[number] += 1
        if event.words[1] == "keyed":
            self.keyed.add(number)
        self.maybe.add(number)

    def _read_stored(self, event: Event) -> None:
        number, job_id = event.words
        self.stored[job_id] = int(number)
        self.maybe.discard(int(number))

    def _read_refused(self, event: Event) -> None:
        number = int(event.words[0])
        if number not in self.keyed:
            self.refused.add(number)
            self.maybe.discard(number)

    def _read_claimed(self, event: Event) -> None:
        number, job_id, attempts = event.words
        if number == "damaged":
            self.damaged.append(job_id)
        else:
            self.numbers[job_id] = int(number)
        delivery = Delivery(event.moment, event.who, job_id, int(attempts))
        self.deliveries[job_id].append(delivery)
        self._last[event.who, job_id, attempts] = delivery

    def _read_begin(self, event: Event) -> None:
        what, job_id, attempts = event.words
        step = (event.kind, what, event.moment)
        self._last[event.who, job_id, attempts].steps.append(step)

    _read_done = _read_begin

    def _read_failed(self, event: Event) -> None:
        what, job_id, attempts, error = event.words
        delivery = self._last[event.who, job_id, attempts]
        delivery.steps.append((event.kind, what, event.moment))
        if what == "ack" and error == "OutcomeUnknown":
            delivery.unknown = True

    def _read_killed(self, event: Event) -> None:
        self.hit[event.words[0]].append(event.moment)

    def _read_frozen(self, event: Event) -> None:
        self.hit[event.words[0]].append(event.moment)
        self.frozen[event.words[0]].append(event.moment)

    def _read_server_killed(self, event: Event) -> None:
        self.server_killed.append(event.moment)
        self.restarted.append(event.moment)

    def _read_server_stopped(self, event: Event) -> None:
        self.restarted.append(event.moment)

    def _read_requeue(self, event: Event) -> None:
        self.requeued[event.words[0]].append(event.moment)

    def _read_requeue_all(self, event: Event) -> None:
        self.requeued_all.append(event.moment)

    def forgotten(self, moment: float, before: float) -> bool:
        """Whether a server that was killed may have forgotten what was true at a moment."""
        return any(
            moment <= killed + 1 and killed - self.forgets <= moment and killed <= before
            for killed in self.server_killed
            if self.forgets
        )


def check(
    events: Sequence[Event], engine: str, dead: Sequence[tuple[str, int]], left: Sequence[str]
) -> Report:
    """Checks a run.

    Args:
        events: The ledger.
        engine: Which one; it says what a killed server may forget.
        dead: The dead letters at the end, as pairs of id and attempts.
        left: What else the server still holds of the queue, in words. That is wrong by itself,
            and then nobody can tell what is lost.
    """
    run = _Run(events, engine)
    report = Report()
    for found in (
        () if left else _each_is_accounted_for(run, dead),
        _nothing_is_stored_twice(run, dead),
        _nothing_is_acked_and_dead(run, dead, report),
        _attempts_have_a_limit(run, dead),
        _repeats_are_explained(run, report),
        (f"the payload of {job_id} is damaged" for job_id in run.damaged),
        (f"the server still holds {line}" for line in left),
    ):
        report.violations += found
    _count(run, dead, report)
    return report


def _each_is_accounted_for(run: _Run, dead: Sequence[tuple[str, int]]) -> Iterator[str]:
    """What was stored was acked, or may have been, or is dead."""
    buried = {job_id for job_id, _ in dead}
    for job_id, number in run.stored.items():
        ended = any(delivery.may_be_acked() for delivery in run.deliveries[job_id])
        if not ended and job_id not in buried:
            yield f"job {job_id} (number {number}) is lost"


def _nothing_is_stored_twice(run: _Run, dead: Sequence[tuple[str, int]]) -> Iterator[str]:
    """One id for a number, but with a key as many as there were tries; none for a refused one."""
    ids: dict[int, set[str]] = defaultdict(set)
    for job_id, number in {**run.numbers, **run.stored}.items():
        ids[number].add(job_id)
    for number, found in ids.items():
        most = run.tries[number] if number in run.keyed else 1
        if len(found) > most:
            yield f"number {number} was stored {len(found)} times: {' '.join(sorted(found))}"
        if number in run.refused and found:
            yield f"number {number} is there, although its enqueue said it is not"
    for job_id, count in Counter(job_id for job_id, _ in dead).items():
        if count > 1:
            yield f"job {job_id} has {count} dead letters"


def _nothing_is_acked_and_dead(
    run: _Run, dead: Sequence[tuple[str, int]], report: Report
) -> Iterator[str]:
    for job_id, _ in dead:
        for delivery in run.deliveries[job_id]:
            acked = delivery.acked_at()
            if acked is None:
                continue
            if run.forgotten(acked, float("inf")):
                report.totals["acks forgotten by a killed server"] += 1
            else:
                yield f"job {job_id} was acked, and is dead"


def _attempts_have_a_limit(run: _Run, dead: Sequence[tuple[str, int]]) -> Iterator[str]:
    for job_id, deliveries in run.deliveries.items():
        for delivery in deliveries:
            if delivery.attempts > DELIVERIES:
                yield f"job {job_id} was delivered with {delivery.attempts} attempts"
    for job_id, attempts in dead:
        if attempts > DELIVERIES:
            yield f"job {job_id} is dead after {attempts} attempts"


def _repeats_are_explained(run: _Run, report: Report) -> Iterator[str]:
    for job_id, deliveries in run.deliveries.items():
        for before, after in itertools.pairwise(deliveries):
            reason = _reason(run, before, after)
            if reason is None:
                yield (
                    f"job {job_id} came to {after.who} at {after.moment:.3f}, and nothing explains "
                    f"it: {before.who} had it at {before.moment:.3f}, {before.steps}"
                )
            else:
                report.repeats[reason] += 1


def _is_late(run: _Run, before: Delivery, after: Delivery) -> bool:
    """Whether a worker got the job before the other one, and was frozen before it noted that."""
    return after.attempts < before.attempts and bool(run.frozen[after.who])


def _reason(run: _Run, before: Delivery, after: Delivery) -> str | None:
    """Why a job came again; None when nothing explains it."""
    reasons = _of_acked(run, before, after) if before.acked_at() else _reasons(run, before, after)
    return next((text for text, holds in reasons if holds), None)


def _of_acked(run: _Run, before: Delivery, after: Delivery) -> Iterator[tuple[str, bool]]:
    """Why a job was given to another worker although the first could ack it."""
    acked = before.acked_at() or 0.0
    forgotten = after.moment > acked and run.forgotten(acked, after.moment)
    yield "an ack that a killed server forgot", forgotten
    yield _EARLY_END, _ended_early(run, before, after)
    yield _LATE_NOTE, _is_late(run, before, after)


def _ended_early(run: _Run, before: Delivery, after: Delivery) -> bool:
    """Whether a restart of the server made a lease up to a second shorter."""
    restarted = any(before.moment <= moment <= after.moment for moment in run.restarted)
    return run.coarse and restarted


def _reasons(run: _Run, before: Delivery, after: Delivery) -> Iterator[tuple[str, bool]]:
    """What may be the reason, and whether it is; the plainest first."""

    def between(moments: Sequence[float], slack: float = 0.0) -> bool:
        return any(before.moment - slack <= moment <= after.moment for moment in moments)

    steps = {(kind, what) for kind, what, _ in before.steps}
    yield "handed back", bool(steps & {("begin", "nack"), ("begin", "release")})
    yield "its worker was killed or frozen", between(run.hit[before.who])
    alive = max(before.moment, before.when("done", "extend") or 0.0)
    yield "its lease was over", after.moment - alive >= VISIBILITY - _EARLY
    yield "a broken connection", any(kind == "failed" for kind, _ in steps)
    yield "requeued", between([*run.requeued[before.job_id], *run.requeued_all], 1.0)
    yield _EARLY_END, _ended_early(run, before, after)
    yield "a killed server", between(run.server_killed, 1.0)
    yield _LATE_NOTE, _is_late(run, before, after)


def _count(run: _Run, dead: Sequence[tuple[str, int]], report: Report) -> None:
    totals = report.totals
    totals["jobs"] = len(run.stored)
    totals["deliveries"] = sum(map(len, run.deliveries.values()))
    totals["acked"] = sum(
        any(one.acked_at() is not None for one in all_of) for all_of in run.deliveries.values()
    )
    totals["dead at the end"] = len(dead)
    totals["enqueues whose outcome nobody knew"] = len(run.maybe)
    for kind, text in (
        ("killed", "processes killed"),
        ("frozen", "workers frozen"),
        ("asked-to-end", "workers ended"),
        ("cut", "cuts"),
        ("server-killed", "servers killed"),
        ("server-stopped", "servers restarted"),
    ):
        totals[text] = run.counts[kind]
    totals["lost"] = sum(text.endswith("is lost") for text in report.violations)
    totals["double dead"] = sum(text.endswith("dead letters") for text in report.violations)
