"""The layout on NATS, as docs/wire-format.md has it, written and read by another client."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import cwist_jq
from tests import servers
from tests.conformance.helpers import MakeQueue, claim, drain, no_job, only_letter
from tests.observers import GROUP, NatsObserver

pytestmark = pytest.mark.engine("nats")


def _publish(
    nats: NatsObserver, name: str, payload: bytes, headers: dict[str, str] | None = None
) -> int:
    """Publishes as a foreign program; the stream must be there. Returns the sequence."""
    subject = f"{nats.stream(name)}.jobs"
    return int(nats.ask(lambda js: js.publish(subject, payload, headers=headers)).seq)


def _raw_publish(server: servers.Server, subject: str, headers: bytes, payload: bytes) -> None:
    """A message whose headers no client library would send."""
    block = b"NATS/1.0\r\n" + headers + b"\r\n"
    head = f"HPUB {subject} {len(block)} {len(block) + len(payload)}\r\n".encode()
    with socket.create_connection((server.host, server.port), timeout=5) as conn:
        conn.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
        conn.sendall(head + block + payload + b"\r\nPING\r\n")
        answer = b""
        while b"PONG" not in answer:
            piece = conn.recv(65536)
            assert piece
            answer += piece


# ---- what we write ----


def test_an_enqueue_is_a_message_on_the_subject_and_nothing_else(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    first = queue.enqueue(b"P\x00", type="T")
    second = queue.enqueue(b"Q")
    stream = nats.stream(queue_name)
    messages = nats.messages(stream)
    assert [(one.subject, one.data) for one in messages] == [
        (f"{stream}.jobs", b"P\x00"),
        (f"{stream}.jobs", b"Q"),
    ]
    assert [one.headers for one in messages] == [{"Cwist-Type": "T"}, {}]
    assert [str(one.seq) for one in messages] == [first, second]
    assert nats.consumer_info(queue_name) is None


def test_the_stream_and_the_consumer(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(visibility_timeout=0.5, consumer="label", max_retries=1)
    queue.enqueue(b"x")
    claim(queue).nack()
    stream = nats.stream(queue_name)
    config = nats.stream_info(stream).config
    assert (config.retention, config.storage) == ("workqueue", "file")
    assert sorted(config.subjects)[:2] == [f"{stream}.jobs", f"{stream}.jobs.>"]
    consumer = nats.consumer_info(queue_name).config
    assert (consumer.durable_name, consumer.filter_subject) == (GROUP, f"{stream}.>")
    assert (consumer.ack_policy, consumer.ack_wait) == ("explicit", 0.5)
    assert (consumer.max_deliver, consumer.max_ack_pending) == (-1, -1)
    assert consumer.max_waiting == 100000
    assert consumer.deliver_subject is None
    dead = nats.stream_info(stream + "_DEAD").config
    assert (dead.retention, dead.storage) == ("limits", "file")
    assert dead.subjects == [f"{stream}.dead.>"]
    assert (dead.max_msgs, dead.max_bytes, dead.max_age or 0) == (-1, -1, 0)


def test_the_names_of_streams(conn: Any, nats: NatsObserver, queue_name: str) -> None:
    """N01, N03: . and : are written so that no two queues meet, and no subject has more tokens."""
    name = f"{queue_name}.a:b"
    queue = conn.queue(name)
    queue.enqueue(b"x")
    stream = f"{queue_name}=2Ea=3Ab"
    (message,) = nats.messages(stream)
    assert message.subject == f"{stream}.jobs"
    drain(queue, 1)
    queue.close()


def test_a_dead_letter_is_a_message_of_its_own_subject(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    queue = make_queue(max_retries=1, consumer="me")
    job_id = queue.enqueue(b"P", type="T")
    stream = nats.stream(queue_name)
    claim(queue).nack("100% ünï\n")
    (message,) = nats.messages(stream + "_DEAD")
    headers = message.headers
    first = headers["Cwist-First"]
    assert message.subject == f"{stream}.dead.{job_id}.{first}"
    assert message.data == b"P"
    assert headers["Cwist-Reason"].isascii()
    assert headers["Cwist-Reason"].isprintable()
    wanted = {
        "Cwist-Type": "T",
        "Cwist-Id": job_id,
        "Cwist-Attempts": "1",
        "Cwist-Cause": "nacked",
        "Cwist-Consumer": "me",
    }
    assert headers.items() >= wanted.items()
    assert only_letter(nats, queue_name).reason == "100% ünï\n"


def test_a_release_is_a_copy(make_queue: MakeQueue, nats: NatsObserver, queue_name: str) -> None:
    """The server counts every delivery, so the copy tells how many were spent."""
    queue = make_queue()
    job_id = queue.enqueue(b"P", type="T")
    claim(queue).nack()
    claim(queue).release()
    stream = nats.stream(queue_name)
    (message,) = nats.messages(stream)
    headers = message.headers
    assert message.subject == f"{stream}.jobs.copy.{job_id}"
    assert int(headers.pop("Cwist-First")) > 0
    assert {name: value for name, value in headers.items() if name.startswith("Cwist-")} == {
        "Cwist-Type": "T",
        "Cwist-Id": job_id,
        "Cwist-Attempts": "1",
        "Cwist-From": job_id,
    }
    (job,) = drain(queue, 1)
    assert (job.id, job.attempts, job.payload) == (job_id, 2, b"P")


def test_a_release_that_was_cut_leaves_one_job(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """The copy was stored and the original not acked: whoever claims the copy deletes it."""
    queue = make_queue(visibility_timeout=0.4)
    job_id = queue.enqueue(b"P")
    held = claim(queue)
    (original,) = nats.messages(nats.stream(queue_name))
    headers = {
        "Cwist-Id": job_id,
        "Cwist-Attempts": "0",
        "Cwist-First": str(original.time_ms),
        "Cwist-From": job_id,
    }
    copy = _publish(nats, queue_name, b"P", headers)
    job = claim(queue)
    assert (job.id, job.attempts) == (job_id, 1)
    assert [one.seq for one in nats.messages(nats.stream(queue_name))] == [copy]
    job.ack()
    no_job(queue, timeout=0.8)
    assert held.id == job_id
    assert nats.leftovers(queue_name) == []


def test_a_copy_deletes_no_other_job(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """Cwist-From that names another job, as a mistaken or hostile publisher may write it."""
    queue = make_queue()
    other = queue.enqueue(b"other")
    held = claim(queue)
    headers = {"Cwist-Id": "999", "Cwist-Attempts": "0", "Cwist-First": "1", "Cwist-From": other}
    _publish(nats, queue_name, b"copy", headers)
    assert drain(queue, 1)[0].payload == b"copy"
    assert [str(one.seq) for one in nats.messages(nats.stream(queue_name))] == [other]
    held.ack()
    assert nats.leftovers(queue_name) == []


def test_a_job_cannot_die_twice(make_queue: MakeQueue, nats: NatsObserver, queue_name: str) -> None:
    """The letter was stored and the job not acked: the repeat is refused, and that is success."""
    queue = make_queue(max_retries=1, visibility_timeout=0.3)
    job_id = queue.enqueue(b"P")
    dropped = claim(queue)
    no_job(queue, timeout=0.6)
    letter = nats.messages(nats.stream(queue_name) + "_DEAD")[0]
    # The same job once more, as it would stand when the ack had been cut off.
    headers = {"Cwist-Id": job_id, "Cwist-Attempts": "1"}
    headers["Cwist-First"] = letter.headers["Cwist-First"]
    _publish(nats, queue_name, b"P", headers)
    no_job(queue, timeout=0.2)
    assert only_letter(nats, queue_name).id == dropped.id
    assert nats.ready_and_claimed(queue_name) == 0


# ---- what others write ----


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        (None, None),
        ({"Cwist-Type": "T"}, "T"),
        ({"X-Trace": "1", "Cwist-Type": "T", "Y": "2"}, "T"),
        ({"X-Trace": "1"}, None),
    ],
    ids=["plain", "type", "more-headers", "foreign-headers"],
)
def test_a_foreign_message_is_a_job(
    queue: cwist_jq.Queue,
    nats: NatsObserver,
    queue_name: str,
    headers: dict[str, str] | None,
    kind: str | None,
) -> None:
    """Rule 11."""
    no_job(queue)
    seq = _publish(nats, queue_name, b"P", headers)
    job = claim(queue)
    assert (job.payload, job.type, job.id, job.attempts) == (b"P", kind, str(seq), 1)
    job.ack()
    assert nats.leftovers(queue_name) == []


def test_a_message_on_a_longer_subject_is_a_job(
    queue: cwist_jq.Queue, nats: NatsObserver, queue_name: str
) -> None:
    no_job(queue)
    subject = f"{nats.stream(queue_name)}.jobs.k.abc"
    nats.ask(lambda js: js.publish(subject, b"P"))
    assert drain(queue, 1)[0].payload == b"P"


def test_unknown_headers_are_kept_over_every_move(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """Rule 11: nack, release, a lease that ended, and the dead letter."""
    queue = make_queue(visibility_timeout=0.3, max_retries=3)
    stream = nats.stream(queue_name)
    no_job(queue)
    foreign = {"X-Trace": "abc=1; d", "tenant": "7", "Cwist-Type": "T"}
    _publish(nats, queue_name, b"P", foreign)

    def kept() -> bool:
        (message,) = nats.messages(stream)
        return message.headers.items() >= foreign.items()

    claim(queue).nack()
    assert kept()
    claim(queue).release()
    assert kept()
    dropped = claim(queue)
    job = claim(queue)
    assert kept()
    job.release()
    assert kept()
    assert dropped.attempts == 2
    claim(queue).nack("enough")
    letter = only_letter(nats, queue_name)
    assert (letter.type, letter.payload, letter.attempts) == ("T", b"P", 3)
    assert letter.others == {"X-Trace": b"abc=1; d", "tenant": b"7"}


MALFORMED = {
    "type not UTF-8": b"Cwist-Type: \xff\xfe\r\n",
    "type with control character": b"Cwist-Type: a\x01b\r\n",
    "type with C1 control character": b"Cwist-Type: a\xc2\x85b\r\n",
    "type too long": b"Cwist-Type: " + b"x" * 256 + b"\r\n",
    "attempts not a number": b"Cwist-Attempts: many\r\n",
    "attempts negative": b"Cwist-Attempts: -1\r\n",
    "attempts too many": b"Cwist-Attempts: 1000001\r\n",
    "attempts far too many": b"Cwist-Attempts: 18446744073709551617\r\n",
    "first not a number": b"Cwist-First: soon\r\n",
    "from not a number": b"Cwist-From: >\r\n",
    "id with a wildcard": b"Cwist-Id: >\r\n",
}


@pytest.mark.parametrize("headers", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_message_is_dead_and_the_loop_lives(
    make_queue: MakeQueue,
    nats: NatsObserver,
    queue_name: str,
    server: servers.Server,
    headers: bytes,
) -> None:
    """P01, X02, rule 11: to the dead letters with its raw headers; the next job comes."""
    queue = make_queue(consumer="reader")
    stream = nats.stream(queue_name)
    no_job(queue)
    _raw_publish(server, f"{stream}.jobs", b"X-Kept: yes\r\n" + headers, b"P")
    _publish(nats, queue_name, b"next")
    job = claim(queue)
    assert job.payload == b"next"
    job.ack()
    (letter,) = nats.messages(stream + "_DEAD")
    assert letter.data == b"P"
    raw = letter.block
    assert b"\r\nCwist-Cause: malformed\r\n" in raw
    assert b"\r\nX-Kept: yes\r\n" in raw
    assert headers.split(b": ")[1].rstrip() in raw
    assert b"\r\nCwist-Reason: " in raw
    assert nats.ready_and_claimed(queue_name) == 0
    assert queue.dead_count() == 1


def test_a_foreign_copy_may_say_how_often_it_was_tried(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """A third client that releases a job writes what the page says."""
    queue = make_queue(max_retries=5)
    no_job(queue)
    headers = {"Cwist-Id": "12345", "Cwist-Attempts": "4", "Cwist-First": "1700000000000"}
    _publish(nats, queue_name, b"P", headers)
    job = claim(queue)
    assert (job.id, job.attempts) == ("12345", 5)
    job.nack("enough")
    letter = only_letter(nats, queue_name)
    assert (letter.id, letter.attempts, letter.first_ms) == ("12345", 5, 1700000000000)


def test_a_message_deleted_by_hand_is_no_ghost(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """S07, on this engine: nothing stays pending, and the next job comes."""
    queue = make_queue(visibility_timeout=0.3)
    job_id = queue.enqueue(b"ghost")
    held = claim(queue)
    nats.ask(lambda js: js.delete_msg(nats.stream(queue_name), int(job_id)))
    queue.enqueue(b"next")
    assert drain(queue, 1)[0].payload == b"next"
    no_job(queue, timeout=0.6)
    assert held.id == job_id
    assert nats.ready_and_claimed(queue_name) == 0


# ---- what is on the server already ----


def test_a_stream_of_another_kind_is_a_conflict(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """What CWIST left: limits retention. Both values are named, and the stream is left alone."""
    stream = nats.stream(queue_name)
    nats.ask(lambda js: js.add_stream(name=stream, subjects=[f"{stream}.jobs"]))
    queue = make_queue()
    with pytest.raises(cwist_jq.Conflict, match=r"(?i)limits") as caught:
        queue.claim(0.5)
    assert "workqueue" in str(caught.value).replace("work-queue", "workqueue").lower()
    assert nats.stream_info(stream).config.retention == "limits"


def test_a_consumer_of_another_kind_is_a_conflict(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """S12: limits of delivery that would strand jobs."""
    queue = make_queue()
    queue.enqueue(b"x")
    stream = nats.stream(queue_name)
    from nats.js.api import AckPolicy, ConsumerConfig

    config = ConsumerConfig(
        durable_name=GROUP,
        filter_subject=f"{stream}.>",
        ack_policy=AckPolicy.EXPLICIT,
        max_deliver=3,
    )
    nats.ask(lambda js: js.add_consumer(stream, config))
    with pytest.raises(cwist_jq.Conflict, match="max_deliver"):
        queue.claim(0.5)


def test_a_consumer_of_another_tool_is_named(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """S11: a work queue takes no second consumer over the same subjects; say which one is there."""
    queue = make_queue()
    queue.enqueue(b"x")
    stream = nats.stream(queue_name)
    from nats.js.api import AckPolicy, ConsumerConfig

    config = ConsumerConfig(durable_name="stale-tool", ack_policy=AckPolicy.EXPLICIT)
    nats.ask(lambda js: js.add_consumer(stream, config))
    with pytest.raises(cwist_jq.Error, match="stale-tool") as caught:
        queue.claim(0.5)
    assert isinstance(caught.value, cwist_jq.Conflict | cwist_jq.Refused)


def test_what_is_not_ours_is_left_alone(
    make_queue: MakeQueue, nats: NatsObserver, queue_name: str
) -> None:
    """An operator's description and limits stay when the visibility is changed."""
    first = make_queue(visibility_timeout=5)
    no_job(first)
    stream = nats.stream(queue_name)
    info = nats.consumer_info(queue_name).config
    info.description = "kept by people"
    info.num_replicas = None
    nats.ask(lambda js: js.add_consumer(stream, info))
    config = nats.stream_info(stream).config
    config.description = "kept too"
    config.max_msg_size = 500000
    nats.ask(lambda js: js.update_stream(config))
    no_job(make_queue(visibility_timeout=0.4))
    assert nats.visibility_ms(queue_name) == 400
    assert nats.consumer_info(queue_name).config.description == "kept by people"
    assert nats.stream_info(stream).config.description == "kept too"
    assert nats.stream_info(stream).config.max_msg_size == 500000
