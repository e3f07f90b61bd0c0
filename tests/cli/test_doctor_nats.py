"""What doctor finds on NATS, before servers and streams that something is wrong with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from cwist_jq.cli import exits
from cwist_jq.cli.address import parse
from cwist_jq.cli.probe_nats import NatsProbe
from tests.cli.program import Program
from tests.waiting import PATIENCE

pytestmark = pytest.mark.engine("nats")

Make = Callable[..., Any]


def _found(url: str, *queues: str, level: str | None = None) -> list[dict[str, Any]]:
    """The findings that are worse than fine, or of one level."""
    done = Program(url)("doctor", *queues, "--json")
    assert done.err == ""
    wrong = any(finding["level"] == "wrong" for finding in done.records)
    assert done.code == (exits.FAILED if wrong else exits.DONE)
    return [
        finding
        for finding in done.records
        if (finding["level"] == level if level else finding["level"] not in {"ok", "note"})
    ]


def _api(url: str, question: str, **fields: Any) -> dict[str, Any]:
    with NatsProbe(parse(url), PATIENCE) as probe:
        return probe.api(question, fields)


def test_a_good_server(server: Any, queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"x")
    assert _found(server.url, queue.name) == []
    assert queue.claim(PATIENCE) is not None
    assert _found(server.url, queue.name, f"{queue.name}-unused") == []


def test_doctor_takes_and_adds_nothing(server: Any, queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"x")
    job = queue.claim(PATIENCE)
    queue.enqueue(b"y")
    before = queue.stats()
    _found(server.url, queue.name)
    after = queue.stats()
    assert (
        (after.ready, after.claimed, after.dead) == (before.ready, before.claimed, 0) == (1, 1, 0)
    )
    assert job is not None
    job.ack()


def test_jetstream_is_off() -> None:
    from tests.servers import NatsServer

    with NatsServer(jetstream=False) as server:
        found = _found(server.url)
    assert [one["level"] for one in found] == ["wrong"]
    assert "-js" in found[0]["mend"]


def test_a_wrong_password(make_server: Make) -> None:
    server = make_server(user="ann", password="right")
    (found,) = _found(f"nats://ann:wrong@127.0.0.1:{server.port}")
    assert found["check"] == "connection"


def test_a_full_account(make_server: Make) -> None:
    account = "jetstream { max_file: 40000 }, users: [ { user: ann, password: pw } ]"
    server = make_server(config=f"accounts {{ A {{ {account} }} }}")
    url = f"nats://ann:pw@127.0.0.1:{server.port}"
    with cwist_jq.connect(url) as conn:
        conn.queue("emails").enqueue(b"x" * 37_000)
    assert [one["check"] for one in _found(url)] == ["storage"]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"retention": "limits"}, "retention is limits"),
        ({"storage": "memory"}, "storage is memory"),
        ({"max_age": 60_000_000_000}, "max_age is 60 s"),
        ({"max_msgs": 10}, "discard old"),
        ({"max_msgs_per_subject": 1}, "max_msgs_per_subject is 1"),
        ({"subjects": ["STREAM.jobs", "STREAM.x"]}, "STREAM.jobs.> are missing"),
    ],
)
def test_a_stream_of_another_kind(
    url: str, queue_name: str, changed: dict[str, Any], word: str
) -> None:
    config = {
        "name": queue_name,
        "subjects": [f"{queue_name}.jobs", f"{queue_name}.jobs.>"],
        "retention": "workqueue",
        "storage": "file",
        "max_age": 0,
        "num_replicas": 1,
        **json.loads(json.dumps(changed).replace("STREAM", queue_name)),
    }
    _api(url, f"STREAM.CREATE.{queue_name}", **config)
    (found,) = _found(url, queue_name)
    assert (found["check"], found["level"]) == ("stream", "wrong")
    assert word.replace("STREAM", queue_name) in found["text"]
    assert queue_name in found["mend"]
    _api(url, f"STREAM.DELETE.{queue_name}")


def test_consumers_of_an_older_client(url: str, queue_name: str) -> None:
    """An older CWIST client has limits retention and a durable for each worker."""
    subjects = [f"{queue_name}.jobs", f"{queue_name}.jobs.>"]
    _api(url, f"STREAM.CREATE.{queue_name}", name=queue_name, subjects=subjects, storage="file")
    durable = {"durable_name": "worker-1", "ack_policy": "explicit"}
    question = f"CONSUMER.DURABLE.CREATE.{queue_name}.worker-1"
    _api(url, question, stream_name=queue_name, config=durable)
    found = _found(url, queue_name)
    assert [one["check"] for one in found] == ["stream", "consumer"]
    assert found[1]["mend"] == f"nats consumer rm {queue_name} worker-1 --force"
    _api(url, f"STREAM.DELETE.{queue_name}")


def test_a_consumer_with_limits(url: str, queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"x")
    name = queue.name
    config = {
        "durable_name": "cwist-jq",
        "ack_policy": "explicit",
        "filter_subject": f"{name}.>",
        "max_deliver": 5,
    }
    question = f"CONSUMER.DURABLE.CREATE.{name}.cwist-jq"
    _api(url, question, stream_name=name, config=config)
    found = _found(url, name)
    assert {one["text"].partition(" is")[0] for one in found} == {"max_deliver", "max_ack_pending"}


def test_a_paused_queue(url: str, queue: cwist_jq.Queue) -> None:
    queue.enqueue(b"x")
    queue.pause()
    (found,) = _found(url, queue.name)
    assert (found["level"], found["mend"]) == ("warning", f"cwist-jq resume {queue.name}")
    Program(url)(*found["mend"].split()[1:]).good()
    assert _found(url, queue.name) == []


_RIGHTS = """authorization {{ users: [
  {{ user: admin, password: pw }}
  {{ user: w, password: pw, permissions: {{ publish: {publish}, subscribe: ["_INBOX.>"] }} }}
] }}"""
_WORKER = [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.emails",
    "$JS.API.STREAM.INFO.emails_DEAD",
    "$JS.API.CONSUMER.INFO.emails.cwist-jq",
    "$JS.API.CONSUMER.MSG.NEXT.emails.cwist-jq",
    "$JS.API.STREAM.MSG.GET.emails",
    "$JS.API.STREAM.MSG.DELETE.emails",
    "$JS.ACK.emails.cwist-jq.>",
    "emails.jobs.copy.*",
    "emails.jobs.k.*",
    "emails.dead.*.*",
]


def _as_worker(make_server: Make, publish: list[str]) -> str:
    server = make_server(config=_RIGHTS.format(publish=json.dumps(publish)))
    with cwist_jq.connect(f"nats://admin:pw@127.0.0.1:{server.port}") as conn:
        queue = conn.queue("emails")
        queue.enqueue(b"x")
        job = queue.claim(PATIENCE)
        assert job is not None
        job.nack(dead=True)
    return f"nats://w:pw@127.0.0.1:{server.port}"


def test_the_documented_rights_are_enough(make_server: Make) -> None:
    url = _as_worker(make_server, _WORKER)
    assert _found(url, "emails") == []
    (note,) = [one for one in _found(url, "emails", level="note") if one["check"] == "rights"]
    assert "it cannot enqueue" in note["text"]


def test_missing_rights_are_named(make_server: Make) -> None:
    missing = ["$JS.API.CONSUMER.MSG.NEXT.emails.cwist-jq", "emails.dead.*.*"]
    url = _as_worker(make_server, [one for one in _WORKER if one not in missing])
    (found,) = [one for one in _found(url, "emails") if one["check"] == "rights"]
    assert missing[0] in found["text"]
    assert "emails.dead.0.0" in found["text"]
    assert json.dumps(missing[0]) in found["mend"]
