"""What doctor looks at in a queue on NATS."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterator
from typing import Any

from cwist_jq.cli.checks_clock import clock_finding
from cwist_jq.cli.finding import Finding, asked, fine, note, warning, wrong
from cwist_jq.cli.peek_nats import CONSUMER, NOT_THERE
from cwist_jq.cli.probe import Refusal
from cwist_jq.cli.probe_nats import NatsProbe, stream_name
from cwist_jq.cli.rights_nats import rights

__all__ = ["queue"]

_WORK_QUEUE = "workqueue"


def queue(probe: NatsProbe, name: str) -> Iterator[Finding]:
    """The checks of one queue."""
    stream = stream_name(name)
    for title, check in (
        ("rights", lambda: rights(probe, stream)),
        ("stream", lambda: _stream(probe, stream)),
        ("consumer", lambda: _consumer(probe, stream, name)),
        ("dead letters", lambda: _dead(probe, stream, name)),
    ):
        yield from asked(title, check)


def _ask(probe: NatsProbe, question: str) -> dict[str, Any] | None:
    """The answer, or None when there is no such stream or consumer."""
    try:
        return probe.api(question)
    except Refusal as refusal:
        if refusal.code in NOT_THERE:
            return None
        raise


def _stream(probe: NatsProbe, stream: str) -> Iterator[Finding]:
    before = time.time()
    found = _ask(probe, f"STREAM.INFO.{stream}")
    after = time.time()
    if found is None:
        yield note("stream", "there is none yet; the first use makes it")
        return
    config = found["config"]
    bad = [*_retention(stream, config), *_kept(stream, config), *_subjects(stream, config)]
    yield from bad
    if not bad:
        yield fine(
            "stream",
            f"{config['storage']} storage, work queue, {config['num_replicas']} replica(s); to "
            "disk by the server's sync_interval",
        )
    yield from _copies(probe, stream, found)
    now = _seconds(found.get("ts"))
    if now is None:
        yield note("clock", "cannot tell: servers before 2.10 do not say their time")
    else:
        yield clock_finding(now, before, after)


def _retention(stream: str, config: dict[str, Any]) -> Iterator[Finding]:
    if config["retention"] != _WORK_QUEUE:
        yield wrong(
            "stream",
            f"retention is {config['retention']}; a queue needs {_WORK_QUEUE}. An older CWIST "
            "client, or another program, made this stream, and retention cannot be changed",
            f"let the older program drain it, then: nats stream rm {stream}",
        )
    if config["storage"] != "file":
        yield wrong(
            "stream",
            f"storage is {config['storage']}: all jobs are gone when the server ends",
            f"drain the queue, then: nats stream rm {stream} (the next use makes it with file "
            "storage)",
        )


def _kept(stream: str, config: dict[str, Any]) -> Iterator[Finding]:
    """Settings by which the server deletes jobs."""
    if config.get("max_age", 0) > 0:
        yield wrong(
            "stream",
            f"max_age is {config['max_age'] / 1e9:g} s: the server deletes older jobs",
            f"nats stream edit {stream} --max-age=0 --force",
        )
    if config.get("max_msgs_per_subject", -1) > 0:
        yield wrong(
            "stream",
            f"max_msgs_per_subject is {config['max_msgs_per_subject']}: the server deletes jobs",
            f"nats stream edit {stream} --max-msgs-per-subject=-1 --force",
        )
    limits = [name for name in ("max_msgs", "max_bytes") if config.get(name, -1) > 0]
    if limits and config.get("discard", "old") == "old":
        yield wrong(
            "stream",
            f"{' and '.join(limits)} with discard old: a full stream deletes the oldest jobs",
            f"nats stream edit {stream} --discard=new --force",
        )


def _subjects(stream: str, config: dict[str, Any]) -> Iterator[Finding]:
    have = set(config.get("subjects") or [])
    missing = {f"{stream}.jobs", f"{stream}.jobs.>"} - have
    if missing:
        yield wrong(
            "stream",
            f"the subjects {', '.join(sorted(missing))} are missing",
            f"nats stream edit {stream} --subjects={','.join(sorted(have | missing))} --force",
        )


def _copies(probe: NatsProbe, stream: str, found: dict[str, Any]) -> Iterator[Finding]:
    cluster = found.get("cluster") or {}
    if cluster and not cluster.get("leader"):
        yield wrong("stream", "it has no leader", f"nats stream cluster peer-remove {stream}")
    if probe.info.get("cluster") and found["config"]["num_replicas"] == 1:
        yield warning(
            "stream",
            "one replica in a cluster: the queue stands still when its server is away",
            f"nats stream edit {stream} --replicas=3 --force",
        )


def _consumer(probe: NatsProbe, stream: str, name: str) -> Iterator[Finding]:
    found = _ask(probe, f"CONSUMER.INFO.{stream}.{CONSUMER}")
    if found is not None:
        bad = list(_settings(stream, found["config"]))
        yield from bad
        if found.get("paused"):
            yield warning("consumer", "the queue is paused", f"cwist-jq resume {name}")
        if not bad:
            wait = found["config"].get("ack_wait", 0) / 1e9
            yield fine("consumer", f"visibility timeout {wait:g} s")
        waiting = found.get("num_waiting", 0)
        yield fine(
            "workers", f"{waiting} waiting claims, {found.get('num_ack_pending', 0)} claimed jobs"
        )
    else:
        yield note("consumer", "there is none yet; the first claim makes it")
    yield from _others(probe, stream)


def _settings(stream: str, config: dict[str, Any]) -> Iterator[Finding]:
    wanted = {
        "ack_policy": "explicit",
        "filter_subject": f"{stream}.>",
        "max_deliver": -1,
        "max_ack_pending": -1,
    }
    for field, value in wanted.items():
        have = config.get(field, -1 if isinstance(value, int) else "none")
        if have != value:
            yield wrong(
                "consumer",
                f"{field} is {have}; a queue needs {value}",
                f"nats consumer rm {stream} {CONSUMER} --force (the next claim makes it; claimed "
                "jobs come back)",
            )


def _others(probe: NatsProbe, stream: str) -> Iterator[Finding]:
    names = (_ask(probe, f"CONSUMER.NAMES.{stream}") or {}).get("consumers") or []
    for other in names:
        if other != CONSUMER:
            yield wrong(
                "consumer",
                f"the consumer {other} takes jobs from this stream (an older CWIST client has one "
                "for each worker)",
                f"nats consumer rm {stream} {other} --force",
            )


def _dead(probe: NatsProbe, stream: str, name: str) -> Iterator[Finding]:
    found = _ask(probe, f"STREAM.INFO.{stream}_DEAD")
    if found is None:
        yield fine("dead letters", "none")
        return
    yield from _kept(f"{stream}_DEAD", found["config"])
    if found["config"]["storage"] != "file":
        yield wrong(
            "dead letters",
            f"storage of {stream}_DEAD is {found['config']['storage']}",
            f"requeue them, then: nats stream rm {stream}_DEAD",
        )
    count = found["state"]["messages"]
    if count:
        yield note("dead letters", f"{count} wait for a decision", f"cwist-jq dead list {name}")
    else:
        yield fine("dead letters", "none")


def _seconds(moment: str | None) -> float | None:
    """A time as the server writes it, with up to nine digits of a second, since 1970."""
    found = re.match(r"(\d+-\d+-\d+T\d+:\d+:\d+)(\.\d+)?(Z|[+-]\d+:\d+)$", moment or "")
    if found is None:
        return None
    zone = "+00:00" if found[3] == "Z" else found[3]
    return dt.datetime.fromisoformat(found[1] + zone).timestamp() + float(found[2] or 0)
