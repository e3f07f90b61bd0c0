"""The rights that docs/states.md lists are enough on NATS, and without them the call is denied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests.fault.support import must_claim
from tests.waiting import Background, eventually

pytestmark = [pytest.mark.engine("nats"), pytest.mark.servers("all")]

PRODUCER = [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.{q}",
    "$JS.API.STREAM.UPDATE.{q}",
    "$JS.API.STREAM.MSG.GET.{q}",
    "{q}.jobs",
    "{q}.jobs.k.*",
    "{q}=wait.>",
]
WORKER = [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.{q}",
    "$JS.API.STREAM.INFO.{q}_DEAD",
    "$JS.API.CONSUMER.INFO.{q}.cwist-jq",
    "$JS.API.CONSUMER.MSG.NEXT.{q}.cwist-jq",
    "$JS.API.STREAM.MSG.GET.{q}",
    "$JS.API.STREAM.MSG.DELETE.{q}",
    "$JS.ACK.{q}.cwist-jq.>",
    "{q}.jobs.copy.*",
    "{q}.jobs.k.*",
    "{q}.dead.*.*",
    "$JS.API.STREAM.MSG.GET.{q}_DEAD",
    "$JS.API.STREAM.MSG.DELETE.{q}_DEAD",
    "{q}=wait.>",
    "$JS.API.STREAM.UPDATE.{q}",
]
LISTS = [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.{q}_DEAD",
    "$JS.API.CONSUMER.CREATE.{q}_DEAD",
    "$JS.API.CONSUMER.MSG.NEXT.{q}_DEAD.*",
    "$JS.API.CONSUMER.DELETE.{q}_DEAD.*",
    "$JS.API.STREAM.MSG.GET.{q}_DEAD",
]
MOVES = ["$JS.API.STREAM.MSG.DELETE.{q}_DEAD", "{q}.jobs.re.*.*"]
STATS = [
    "$JS.API.STREAM.INFO.{q}",
    "$JS.API.CONSUMER.INFO.{q}.cwist-jq",
    "$JS.API.STREAM.MSG.GET.{q}",
]
PURGE = ["$JS.API.STREAM.PURGE.{q}"]
PAUSE = ["$JS.API.CONSUMER.PAUSE.{q}.cwist-jq", "$JS.API.CONSUMER.INFO.{q}.cwist-jq"]


def _config(users: dict[str, list[str]], queue: str) -> str:
    lines = ['  { user: "admin", password: "admin" }']
    for name, subjects in users.items():
        allowed = ", ".join(f'"{subject.format(q=queue)}"' for subject in subjects)
        lines.append(
            f'  {{ user: "{name}", password: "pw", permissions: '
            f'{{ publish: [{allowed}], subscribe: ["_INBOX.>"] }} }}'
        )
    return "authorization { users = [\n" + "\n".join(lines) + "\n] }\n"


def test_the_listed_rights_are_enough(
    make_server: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    open_queue: Callable[..., Any],
    queue_name: str,
) -> None:
    users = {
        "producer": PRODUCER,
        "worker": WORKER,
        "reader": LISTS,
        "mover": LISTS + MOVES,
        "watcher": [*LISTS, *STATS],
        "purger": WORKER + PURGE,
        "pauser": [*LISTS, *PAUSE],
    }
    server = make_server(config=_config(users, queue_name))
    at = f"{server.host}:{server.port}"
    boss = open_queue(f"nats://admin:admin@{at}", queue_name)
    modern = _has_delays(make_observer("nats", f"nats://admin:admin@{at}"))
    assert boss.claim(0) is None

    def as_user(name: str) -> Any:
        url = f"nats://{name}:pw@{at}"
        return open_queue(url, queue_name, operation_timeout=2.0, max_retries=1)

    producer, worker = as_user("producer"), as_user("worker")
    producer.enqueue(b"1", dedupe_key="k", headers={"H": "1"})
    assert isinstance(producer.enqueue(b"1", dedupe_key="k"), cwist_jq.DuplicateId)
    must_claim(worker).release()
    must_claim(worker).nack("why")
    if modern:
        producer.enqueue(b"2", delay=0.1)
        must_claim(worker).release(delay=0.1)
        must_claim(worker).ack()
        producer.enqueue(b"2", delay=60)
    (letter,) = as_user("reader").dead.page()
    with pytest.raises(cwist_jq.Denied):
        as_user("reader").dead.purge(letter.id)
    assert as_user("reader").dead.read(letter.id).payload == b"1"
    assert as_user("mover").dead.requeue_all() == 1
    stats = as_user("watcher").stats()
    assert (stats.ready, stats.delayed) == (1, int(modern))
    must_claim(worker).nack()
    as_user("mover").dead.purge(letter.id)
    producer.enqueue(b"3")
    assert as_user("purger").purge() == 1 + int(modern)
    if modern:
        as_user("pauser").pause()
        waiting = Background(lambda: worker.claim(10))
        eventually(lambda: boss.stats().consumers == 1)
        producer.enqueue(b"4")
        as_user("pauser").resume()
        job = waiting.result()
        assert job is not None
        job.ack()
        with pytest.raises(cwist_jq.Denied):
            as_user("watcher").pause()


def _has_delays(observer: Any) -> bool:
    async def version(js: Any) -> Any:
        return js._nc.connected_server_version

    return int(observer.ask(version).minor) >= 12


def test_without_the_right_to_ask_who_holds_a_key(
    make_server: Callable[..., Any], open_queue: Callable[..., Any], queue_name: str
) -> None:
    """A duplicate is refused by the server, but whose it is cannot be told."""
    few = [subject for subject in PRODUCER if "MSG.GET" not in subject]
    server = make_server(config=_config({"producer": few}, queue_name))
    at = f"{server.host}:{server.port}"
    boss = open_queue(f"nats://admin:admin@{at}", queue_name)
    boss.enqueue(b"1", dedupe_key="k")
    producer = open_queue(f"nats://producer:pw@{at}", queue_name, operation_timeout=1.0)
    with pytest.raises(cwist_jq.Denied):
        producer.enqueue(b"2", dedupe_key="k")
    assert must_claim(boss).payload == b"1"
