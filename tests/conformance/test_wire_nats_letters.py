"""Dead letters, statistics, purge and pause on NATS, beside another client."""

from __future__ import annotations

import time
from typing import Any

import pytest

import cwist_jq
from tests.conformance.helpers import MakeQueue, claim, drain, no_job, only_letter
from tests.observers import NatsObserver
from tests.proxy import Proxy
from tests.waiting import Background, eventually

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
    return int(nats.ask(lambda js: js.publish(subject, payload, headers=headers)).seq)


def _kill(queue: cwist_jq.Queue, payloads: list[bytes], **options: Any) -> list[str]:
    """Enqueues these and lets them die; their ids."""
    ids = []
    for payload in payloads:
        ids.append(queue.enqueue(payload, **options))
        claim(queue).nack(f"why {payload.decode()}")
    return ids


# ---- lists ----


def test_letters_are_listed_without_payloads(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1, consumer="me")
    given = {"traceparent": "00-1", "Url": "http://a/"}
    (job_id,) = _kill(queue, [b"P" * 1000], type=" T ", headers=given)
    (letter,) = queue.dead.page()
    stored = only_letter(nats, queue_name)
    assert (letter.id, letter.type, letter.payload, letter.size) == (job_id, " T ", None, 1000)
    assert (letter.cause, letter.attempts, letter.consumer) == ("nacked", 1, "me")
    assert letter.reason == "why " + "P" * 1000
    assert dict(letter.headers) == given
    assert letter.first_time is not None
    assert letter.death_time is not None
    assert round(letter.first_time.timestamp() * 1000) == stored.first_ms
    assert round(letter.death_time.timestamp() * 1000) == stored.last_ms
    assert queue.dead.read(job_id).payload == b"P" * 1000
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.read("77")
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.read("*")


@pytest.mark.parametrize("shape", ["dense", "gaps"])
def test_pages_in_both_directions(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str, shape: str
) -> None:
    """Also of a stream with wide gaps between the letters."""
    queue = make_queue(max_retries=1)
    stream = nats.stream(queue_name)
    no_job(queue)
    gaps = shape == "gaps"
    count = 400 if gaps else 25

    async def publish(js: Any) -> None:
        for number in range(1, count + 1):
            headers = {"Cwist-Id": str(number), "Cwist-First": "5", "Cwist-Attempts": "1"}
            await js.publish(f"{stream}.dead.{number}.5", b"x" * number, headers=headers)
        for number in range(1, count + 1):
            if gaps and not (number < 8 or 150 < number < 160 or number > 395):
                await js.delete_msg(f"{stream}_DEAD", number)

    nats.ask(publish)
    wanted = [message.seq for message in nats.messages(stream + "_DEAD")]
    for oldest_first in (True, False):
        found: list[int] = []
        mark = None
        pages = 0
        while pages == 0 or mark is not None:
            page = queue.dead.page(4, oldest_first=oldest_first, after=mark)
            found += [int(letter.id) for letter in page]
            assert all(letter.size == int(letter.id) for letter in page)
            mark = page.mark
            pages += 1
        assert found == (wanted if oldest_first else wanted[::-1])
        assert pages in (len(wanted) // 4 + 1, (len(wanted) + 3) // 4)
    info = nats.stream_info(stream + "_DEAD")
    assert info.state.consumer_count == 0


def test_an_empty_list(make_queue: MakeQueue, nats: NatsObserver, queue_name: str) -> None:
    queue = make_queue(max_retries=1)
    assert list(queue.dead.page()) == []  # no stream
    no_job(queue)
    assert list(queue.dead.page()) == []
    assert list(queue.dead.page(oldest_first=True)) == []
    with pytest.raises(ValueError, match="mark"):
        queue.dead.page(after="x")
    assert queue.dead.requeue_all() == 0
    assert queue.dead.purge_all() == 0


def test_letters_of_other_programs_are_listed(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """A letter may have lost its headers; then its subject tells id and first time."""
    queue = make_queue()
    no_job(queue)
    stream = nats.stream(queue_name)
    _publish(nats, f"{stream}.dead.55.1700000000000", b"bare")
    _publish(nats, f"{stream}.dead.what", b"else")
    _publish(nats, f"{stream}.dead.56.1", b"headers", {"Cwist-Id": "56", "A": "", "B": "C: d"})
    bare, other, named = queue.dead.page(oldest_first=True)
    assert (bare.id, bare.size, bare.attempts) == ("55", 4, 0)
    assert bare.first_time is not None
    assert round(bare.first_time.timestamp()) == 1700000000
    assert other.size == 4
    assert dict(named.headers) == {"A": "", "B": "C: d"}
    assert queue.dead.read("55").payload == b"bare"
    queue.dead.requeue("55")
    job = claim(queue)
    assert (job.id, job.payload) == ("55", b"bare")


# ---- moves ----


def test_a_requeued_letter_is_a_job_of_its_own_subject(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=2)
    job_id = queue.enqueue(b"P\x00", type="T", headers={"H": "1"}, dedupe_key="k")
    claim(queue).nack()
    claim(queue).nack("why")
    stream = nats.stream(queue_name)
    (letter,) = nats.messages(stream + "_DEAD")
    queue.dead.requeue(job_id)
    assert nats.messages(stream + "_DEAD") == []
    (message,) = nats.messages(stream)
    assert message.subject == f"{stream}.jobs.re.{letter.seq}.{job_id}"
    assert message.data == b"P\x00"
    assert {name: value for name, value in message.headers.items() if name[:5] != "Nats-"} == {
        "Cwist-Type": "T",
        "Cwist-Id": job_id,
        "Cwist-First": letter.headers["Cwist-First"],
        "Cwist-Dead": str(letter.seq),
        "H": "1",
    }
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.requeue(job_id)
    job = claim(queue)
    assert (job.id, job.attempts, job.type, dict(job.headers)) == (job_id, 1, "T", {"H": "1"})
    job.nack()
    claim(queue).nack("again")
    (again,) = nats.messages(stream + "_DEAD")
    first = letter.headers["Cwist-First"]
    assert again.subject == f"{stream}.dead.{job_id}.{first}-{letter.seq}"
    queue.dead.requeue(job_id)
    drain(queue, 1)
    assert nats.leftovers(queue_name) == []


def test_a_requeue_that_was_cut_leaves_one_job(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """The job was published and the letter not deleted: its claim deletes it, and so does another
    requeue, which moves nothing."""
    queue = make_queue(max_retries=1)
    stream = nats.stream(queue_name)

    def cut(payload: bytes) -> str:
        (job_id,) = _kill(queue, [payload])
        letter = nats.messages(stream + "_DEAD")[-1]
        headers = {"Cwist-Id": job_id, "Cwist-Dead": str(letter.seq)}
        headers["Cwist-First"] = letter.headers["Cwist-First"]
        _publish(nats, f"{stream}.jobs.re.{letter.seq}.{job_id}", payload, headers)
        return job_id

    job_id = cut(b"claimed")
    job = claim(queue)
    assert (job.id, job.attempts) == (job_id, 1)
    assert nats.messages(stream + "_DEAD") == []
    job.ack()
    job_id = cut(b"requeued")
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.requeue(job_id)
    assert nats.messages(stream + "_DEAD") == []
    assert [one.payload for one in drain(queue, 1)] == [b"requeued"]


def test_a_requeued_job_deletes_no_other_letter(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """The stream of the letters was made anew, and another letter has the sequence."""
    queue = make_queue(max_retries=1)
    (job_id,) = _kill(queue, [b"P"])
    stream = nats.stream(queue_name)
    headers = {"Cwist-Id": "99", "Cwist-First": "1", "Cwist-Dead": "1"}
    _publish(nats, f"{stream}.jobs.re.1.99", b"other", headers)
    assert [one.payload for one in drain(queue, 1)] == [b"other"]
    assert only_letter(nats, queue_name).id == job_id


def test_two_operators_move_each_letter_once(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1)
    names = [b"%d" % number for number in range(60)]
    _kill(queue, names)
    others = [make_queue(max_retries=1) for _ in range(3)]
    moving = [Background(one.dead.requeue_all) for one in others]
    counts = [one.result() for one in moving]
    assert sum(counts) == len(names)
    assert sorted(job.payload for job in drain(queue, len(names))) == sorted(names)
    assert nats.leftovers(queue_name) == []


def test_an_operator_who_is_late_moves_no_letter_twice(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str, proxy: Proxy, proxy_url: str
) -> None:
    """Meanwhile another one requeued the letter, and the job died again."""
    queue = make_queue(max_retries=1)
    (job_id,) = _kill(queue, [b"twice?"])
    with cwist_jq.connect(proxy_url) as conn, conn.queue(queue_name, max_retries=1) as other:
        proxy.stall_at(b".jobs.re.")
        late = Background(lambda: other.dead.requeue(job_id))
        eventually(lambda: proxy.stalls)
        queue.dead.requeue(job_id)
        claim(queue).nack("again")
        proxy.flow()
        with pytest.raises(cwist_jq.NotFound):
            late.result()
    assert only_letter(nats, queue_name).id == job_id
    no_job(queue)


def test_letters_are_purged(make_queue: MakeQueue, nats: NatsObserver, queue_name: str) -> None:
    queue = make_queue(max_retries=1)
    ids = _kill(queue, [b"1", b"2"], type="A") + _kill(queue, [b"3"], type="B")
    queue.dead.purge(ids[0])
    with pytest.raises(cwist_jq.NotFound):
        queue.dead.purge(ids[0])
    assert queue.dead.purge_all(older_than=3600) == 0
    assert queue.dead.purge_all(type="A") == 1
    assert queue.dead.requeue_all(type="A") == 0
    assert [letter.id for letter in nats.dead(queue_name)] == [ids[2]]
    assert queue.dead.purge_all() == 1
    assert nats.leftovers(queue_name) == []


def test_a_full_queue_takes_no_letter_back(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1, max_length=2)
    (job_id,) = _kill(queue, [b"dead"])
    queue.enqueue(b"1")
    queue.enqueue(b"2")
    with pytest.raises(cwist_jq.QueueFull):
        queue.dead.requeue(job_id)
    assert only_letter(nats, queue_name).id == job_id
    claim(queue).ack()
    queue.dead.requeue(job_id)
    assert [job.id for job in drain(queue, 2)][-1] == job_id


# ---- statistics, purge, pause ----


def test_statistics(make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str) -> None:
    queue = make_queue(max_retries=1)
    stats = queue.stats()
    assert (stats.ready, stats.claimed, stats.delayed, stats.dead, stats.oldest_ready) == (
        0,
        0,
        0,
        0,
        None,
    )
    assert nats.stream_info(nats.stream(queue_name)) is None
    queue.enqueue(b"1")
    assert queue.stats().ready == 1  # before there is a consumer
    _kill(queue, [])
    claim(queue).nack()
    for number in range(4):
        queue.enqueue(b"%d" % number)
    if minor >= 12:
        queue.enqueue(b"later", delay=30)
        queue.enqueue(b"later", delay=30, dedupe_key="k")
    held = claim(queue)
    time.sleep(0.05)
    stats = queue.stats()
    assert (stats.ready, stats.claimed, stats.dead) == (3, 1, 1)
    assert stats.delayed == (2 if minor >= 12 else 0)
    assert stats.oldest_ready is not None
    assert 0.04 < stats.oldest_ready < 5
    assert not stats.paused
    assert held.id
    assert stats.consumers == 1  # holds the job
    rest = [claim(queue) for _ in range(3)]
    waiting = [Background(lambda: make_queue().claim(10)) for _ in range(2)]
    eventually(lambda: queue.stats().consumers == 2)
    for _ in waiting:
        queue.enqueue(b"for one that waits")
    assert all(one.result() is not None for one in waiting)
    assert len(rest) == 3


def test_a_purge_takes_what_is_ready_or_delayed(
    make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    """Claimed and dead ones stay, and a worker that runs loses nothing that it has."""
    queue = make_queue(max_retries=3)
    assert queue.purge() == 0
    worker = make_queue(max_retries=1)
    (dead,) = _kill(worker, [b"dead"])
    for number in range(600):
        queue.enqueue(b"%d" % number, dedupe_key="k" if number == 7 else None)
    held = [claim(queue), claim(queue)]
    held[1].nack()
    count = 599
    if minor >= 12:
        queue.enqueue(b"later", delay=30)
        queue.enqueue(b"later", delay=30, dedupe_key="d")
        count += 2
    assert queue.purge() == count
    assert queue.stats()[:4] == (0, 1, 0, 1)
    assert not isinstance(queue.enqueue(b"free", dedupe_key="k"), cwist_jq.DuplicateId)
    held[0].ack()
    assert [job.payload for job in drain(queue, 1)] == [b"free"]
    assert only_letter(nats, queue_name).id == dead


def test_a_purge_gives_back_what_came_later(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue()
    other = make_queue()
    for number in range(300):
        queue.enqueue(b"old %d" % number)
    adding = Background(lambda: [other.enqueue(b"new %d" % number) for number in range(300)])
    purged = queue.purge()
    adding.result()
    jobs = drain(queue, 600 - purged)
    assert 300 <= purged <= 600
    assert all(job.payload.startswith(b"new") for job in jobs)
    assert {job.attempts for job in jobs} <= {1}


def test_pause(make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str) -> None:
    """It is kept by the server, for all handles; a claim that waits goes on when it ends."""
    queue = make_queue()
    worker = make_queue()
    if minor < 11:
        for call in (queue.pause, queue.resume):
            with pytest.raises(cwist_jq.Unsupported, match=r"2\.11"):
                call()
        return
    queue.resume()
    queue.enqueue(b"held")
    held = claim(worker)
    queue.pause()
    queue.pause()
    assert queue.stats().paused
    for number in range(3):
        queue.enqueue(b"%d" % number)
    no_job(worker)
    start = time.monotonic()
    no_job(worker, timeout=0.5)
    assert 0.4 < time.monotonic() - start < 1.5
    held.nack()
    no_job(make_queue(visibility_timeout=1.0))  # which sets the visibility, and leaves the pause
    assert worker.claim_many(5, 0.1) == []
    waiting = Background(lambda: worker.claim(10))
    eventually(lambda: int(nats.consumer_info(queue_name).num_waiting or 0) > 0)
    start = time.monotonic()
    queue.resume()
    assert waiting.result() is not None
    assert time.monotonic() - start < 1
    assert not queue.stats().paused


def test_a_purge_of_a_paused_queue(
    make_queue: MakeQueue, minor: int, nats: NatsObserver, queue_name: str
) -> None:
    if minor < 11:
        return  # no pause below 2.11
    queue = make_queue()
    queue.enqueue(b"held")
    held = claim(queue)
    queue.pause()
    for number in range(600):
        queue.enqueue(b"%d" % number)
    assert queue.purge() == 600
    queue.resume()
    held.ack()
    assert nats.leftovers(queue_name) == []
