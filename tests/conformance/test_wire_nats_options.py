"""Delayed and unique jobs, headers and limits on NATS, written and read by another client."""

from __future__ import annotations

import time
from typing import Any

import pytest

import cwist_jq
from cwist_jq import Item
from tests.conformance.helpers import MakeQueue, claim, drain, no_job
from tests.observers import NatsObserver
from tests.waiting import eventually

pytestmark = [pytest.mark.engine("nats"), pytest.mark.servers("all")]


@pytest.fixture
def minor(nats: NatsObserver) -> int:
    """The second number of the server's version."""

    async def version(js: Any) -> Any:
        return js._nc.connected_server_version

    return int(nats.ask(version).minor)


def _publish(
    nats: NatsObserver, subject: str, payload: bytes, headers: dict[str, str] | None = None
) -> int:
    """Publishes as a foreign program; the stream must be there. Returns the sequence."""
    return int(nats.ask(lambda js: js.publish(subject, payload, headers=headers)).seq)


def _ours(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.startswith("Nats-")}


# ---- headers ----


def test_headers_of_a_job_are_headers_of_its_message(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    given = {"traceparent": "00-ab-cd-01", "X-Name": "a: b", "Url": "http://ünï/", "x-name": "2"}
    queue.enqueue(b"P", type="T", headers=given)
    (message,) = nats.messages(nats.stream(queue_name))
    assert message.headers == {"Cwist-Type": "T", **given}
    job = claim(queue)
    assert dict(job.headers) == given
    job.release()
    (copy,) = nats.messages(nats.stream(queue_name))
    assert {name: copy.headers[name] for name in given} == given
    assert dict(drain(queue, 1)[0].headers) == given


def test_headers_that_others_write_are_read(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    """Ours and the server's are not among them, whatever their case."""
    drain(queue, 0)
    headers = {"A": "1", "NATS-Msg-Id": "7", "cwist-type": "not ours", "Cwist-Foo": "x", "b": ""}
    _publish(nats, f"{nats.stream(queue_name)}.jobs", b"P", headers)
    (job,) = drain(queue, 1)
    assert {name: job.headers[name] for name in ("A", "b")} == {"A": "1", "b": ""}
    assert len(job.headers) == 2


# ---- dedupe keys ----


def test_a_key_is_the_subject(queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str) -> None:
    job_id = queue.enqueue(b"P", dedupe_key="A_1-b/c.é *")
    stream = nats.stream(queue_name)
    (message,) = nats.messages(stream)
    assert message.subject == f"{stream}.jobs.k.A_1-b=2Fc=2E=C3=A9=20=2A"
    assert str(message.seq) == job_id
    assert _ours(message.headers) == {}


def test_a_key_is_held_over_every_move(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """T05, T06: by the job, ready, claimed, nacked, released; until it is acked."""
    queue = make_queue(max_retries=10)
    key = "k" * 255
    job_id = queue.enqueue(b"P", dedupe_key=key)
    for move in ("nack", "release", "nack"):
        assert queue.enqueue(b"no", dedupe_key=key) == job_id
        job = claim(queue)
        assert queue.enqueue(b"no", dedupe_key=key) == job_id
        getattr(job, move)()
    assert len(nats.messages(nats.stream(queue_name))) == 1
    job = claim(queue)
    assert (job.id, job.attempts) == (job_id, 3)
    job.ack()
    assert nats.leftovers(queue_name) == []
    assert not isinstance(queue.enqueue(b"Q", dedupe_key=key), cwist_jq.DuplicateId)


def test_a_key_is_free_again_when_its_job_is_dead(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    first = queue.enqueue(b"P", dedupe_key="k")
    claim(queue).nack()
    second = queue.enqueue(b"Q", dedupe_key="k")
    assert first != second
    assert drain(queue, 1)[0].payload == b"Q"
    assert [letter.id for letter in nats.dead(queue_name)] == [first]


def test_a_copy_of_a_key_stays_on_its_subject(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue()
    job_id = queue.enqueue(b"P", dedupe_key="k")
    claim(queue).release()
    stream = nats.stream(queue_name)
    (copy,) = nats.messages(stream)
    assert copy.subject == f"{stream}.jobs.k.k"
    assert copy.headers["Nats-Expected-Last-Subject-Sequence"] == job_id
    assert copy.headers["Cwist-From"] == job_id
    # As it stands when the release was cut: both are there, and the copy's claim deletes the other.
    held = claim(queue)
    headers = {
        "Cwist-Id": job_id,
        "Cwist-First": copy.headers["Cwist-First"],
        "Cwist-Attempts": "0",
        "Cwist-From": str(copy.seq),
    }
    _publish(nats, f"{stream}.jobs.k.k", b"P", headers)
    again = claim(queue)
    assert (again.id, again.attempts) == (job_id, 1)
    assert len(nats.messages(stream)) == 1
    again.ack()
    assert held.id == job_id
    assert nats.leftovers(queue_name) == []


def test_a_release_that_meets_another_job_under_its_key_loses_none(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """A foreign publisher wrote to the subject without asking whether it is free."""
    queue = make_queue(visibility_timeout=0.5)
    queue.enqueue(b"ours", dedupe_key="k")
    job = claim(queue)
    _publish(nats, f"{nats.stream(queue_name)}.jobs.k.k", b"theirs")
    with pytest.raises(cwist_jq.Conflict, match="dedupe key"):
        job.release()
    found: set[bytes] = set()

    def both_came() -> bool:
        found.add(claim(queue).payload)
        return found == {b"ours", b"theirs"}

    eventually(both_came)


def test_keys_in_batches(queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str) -> None:
    held = queue.enqueue(b"0", dedupe_key="held")
    items = [
        Item(b"1"),
        Item(b"2", dedupe_key="held"),
        Item(b"3", dedupe_key="new"),
        Item(b"4", dedupe_key="new"),
        Item(b"5"),
    ]
    ids = queue.enqueue_many(items)
    assert ids[1] == held
    assert ids[3] == ids[2]
    assert [isinstance(one, cwist_jq.DuplicateId) for one in ids] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert [job.payload for job in drain(queue, 4)] == [b"0", b"1", b"3", b"5"]


def test_keys_in_batches_of_all_or_none(
    queue: cwist_jq.Queue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    """Duplicates do not count as failed, and the others are stored in one step."""
    if minor < 12:
        return  # needs 2.12; that it is refused is tested with batches
    held = queue.enqueue(b"0", dedupe_key="held")
    items = [Item(b"1"), Item(b"2", dedupe_key="held")]
    items += [Item(b"3", dedupe_key="new"), Item(b"4", dedupe_key="new"), Item(b"5", delay=0.3)]
    ids = queue.enqueue_all(items)
    assert ids[1] == held
    assert ids[3] == ids[2]
    assert queue.enqueue_all([Item(b"6", dedupe_key="held"), Item(b"7", dedupe_key="new")]) == [
        held,
        ids[2],
    ]
    jobs = [claim(queue) for _ in range(4)]
    assert [(job.payload, job.id) for job in jobs] == [
        (b"0", held),
        (b"1", ids[0]),
        (b"3", ids[2]),
        (b"5", ids[4]),
    ]


# ---- delays ----


def test_a_delay_is_a_schedule(
    queue: cwist_jq.Queue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    stream = nats.stream(queue_name)
    queue.enqueue(b"first")
    drain(queue, 1)
    if minor < 12:
        with pytest.raises(cwist_jq.Unsupported, match=r"version 2\.\d+\.\d+; 2\.12 or newer"):
            queue.enqueue(b"P", delay=30)
        assert nats.messages(stream) == []
        return
    before = time.time()
    job_id = queue.enqueue(b"P", type="T", delay=30, headers={"H": "1"})
    info = nats.stream_info(stream)
    assert f"{stream}=wait.>" in info.config.subjects
    (message,) = nats.messages(stream)
    assert message.subject == f"{stream}=wait.{job_id}"
    assert int(job_id) >= 2**63
    assert message.headers["Nats-Schedule-Target"] == f"{stream}.jobs"
    assert message.headers["Nats-Schedule"].startswith("@at 20")
    assert message.headers["Nats-Schedule"].endswith("Z")
    wanted = {"Cwist-Id": job_id, "Cwist-Type": "T", "H": "1"}
    assert _ours(message.headers).items() >= wanted.items()
    assert abs(int(message.headers["Cwist-First"]) / 1000 - before) < 2
    no_job(queue)


def test_a_delayed_job_comes_in_time(
    queue: cwist_jq.Queue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    """T01, T07: with a key too, and its key is not taken for another's."""
    if minor < 12:
        return  # delays need 2.12; that they are refused is tested above
    plain = queue.enqueue(b"plain", delay=0.4)
    keyed = queue.enqueue(b"keyed", delay=0.4, dedupe_key="k")
    assert queue.enqueue(b"no", dedupe_key="k") == keyed
    assert queue.enqueue(b"no", dedupe_key="k", delay=1) == keyed
    start = time.monotonic()
    jobs = {job.payload: job for job in (claim(queue), claim(queue))}
    assert 0.3 < time.monotonic() - start < 1.5
    assert {name: job.id for name, job in jobs.items()} == {b"plain": plain, b"keyed": keyed}
    assert {job.attempts for job in jobs.values()} == {1}
    assert queue.enqueue(b"no", dedupe_key="k", delay=1) == keyed
    for job in jobs.values():
        job.ack()
    assert nats.leftovers(queue_name) == []


def test_a_snooze_is_a_copy_with_a_schedule(
    queue: cwist_jq.Queue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    stream = nats.stream(queue_name)
    job_id = queue.enqueue(b"P", dedupe_key="k")
    job = claim(queue)
    if minor < 12:
        with pytest.raises(cwist_jq.Unsupported, match=r"2\.12"):
            job.release(delay=1)
        assert len(nats.messages(stream)) == 1
        return
    job.release(delay=0.5)
    (message,) = nats.messages(stream)
    assert message.subject == f"{stream}=wait.jobs.k.k"
    assert message.headers["Nats-Schedule-Target"] == f"{stream}.jobs.k.k"
    assert message.headers["Cwist-From"] == job_id
    assert queue.enqueue(b"no", dedupe_key="k") == job_id
    start = time.monotonic()
    job = claim(queue)
    assert time.monotonic() - start > 0.3
    assert (job.id, job.attempts) == (job_id, 1)
    job.release(delay=0.1)
    drain_one = claim(queue)
    assert (drain_one.id, drain_one.attempts) == (job_id, 1)
    drain_one.ack()
    assert nats.leftovers(queue_name) == []


# ---- a limit ----


def test_a_limit_is_a_setting_of_the_stream(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_length=3)
    stream = nats.stream(queue_name)
    queue.enqueue(b"1")
    config = nats.stream_info(stream).config
    assert (config.max_msgs, config.discard) == (3, "new")
    assert queue.enqueue(b"2", dedupe_key="k")
    queue.enqueue(b"3")
    job = claim(queue)
    for key in (None, "other"):
        with pytest.raises(cwist_jq.QueueFull):
            queue.enqueue(b"4", dedupe_key=key)
    assert isinstance(queue.enqueue(b"2", dedupe_key="k"), cwist_jq.DuplicateId)
    with pytest.raises(cwist_jq.Unsupported, match="max_length"):
        queue.enqueue(b"4", delay=1)
    assert len(nats.messages(stream)) == 3
    job.ack()
    queue.enqueue(b"4")
    assert [one.data for one in nats.messages(stream)] == [b"2", b"3", b"4"]


def test_a_full_queue_has_room_for_its_own_moves(
    make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    """The limit is lifted while the copies are stored, and put back."""
    queue = make_queue(max_length=2, max_retries=10)
    ids = [queue.enqueue(b"1"), queue.enqueue(b"2", dedupe_key="k")]
    jobs = [claim(queue), claim(queue)]
    queue.release_many(jobs)
    config = nats.stream_info(nats.stream(queue_name)).config
    assert (config.max_msgs, config.discard) == (2, "new")
    jobs = [claim(queue), claim(queue)]
    attempts = 1 if minor >= 10 else 2  # below 2.10 a release is a nack then
    assert sorted((job.id, job.attempts) for job in jobs) == sorted((one, attempts) for one in ids)
    for job in jobs:
        job.nack()
    assert len(drain(queue, 2)) == 2


def test_a_limit_deletes_no_jobs(
    make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    """A queue that holds more keeps them; 2.9.10 would not, so there the limit is refused."""
    plain = make_queue()
    for number in range(5):
        plain.enqueue(b"%d" % number)
    limited = make_queue(max_length=2)
    wanted = cwist_jq.Unsupported if minor < 10 else cwist_jq.QueueFull
    with pytest.raises(wanted):
        limited.enqueue(b"more")
    assert len(drain(plain, 5)) == 5


def test_a_limit_that_was_left_lifted_is_put_back(
    make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    """As a worker leaves it that is killed while it releases."""
    if minor < 10:
        return  # never lifted below 2.10
    queue = make_queue(max_length=2)
    queue.enqueue(b"1")
    stream = nats.stream(queue_name)

    async def lift(js: Any) -> None:
        config = (await js.stream_info(stream)).config
        config.max_msgs = 2**40 + 2
        await js.update_stream(config)

    nats.ask(lift)
    other = make_queue(max_length=2)
    other.enqueue(b"2")
    with pytest.raises(cwist_jq.QueueFull):
        other.enqueue(b"3")


def test_a_queue_with_delayed_jobs_takes_no_limit(
    make_queue: MakeQueue, minor: int, queue_name: str
) -> None:
    if minor < 12:
        return  # delays need 2.12
    make_queue().enqueue(b"1", delay=0.1)
    with pytest.raises(cwist_jq.Unsupported, match="max_length"):
        make_queue(max_length=2).enqueue(b"2")
