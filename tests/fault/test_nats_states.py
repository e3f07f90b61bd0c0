"""NATS servers without JetStream, with few rights, or with streams of somebody else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import cwist_jq
from tests import servers
from tests.fault.support import blocked_claim, drain, fails_within, leftovers, must_claim

pytestmark = [pytest.mark.engine("nats"), pytest.mark.servers("all")]

SECRET = "s3cret-w0rd"


def _users(permissions: str) -> str:
    return (
        "authorization { users = [\n"
        '  { user: "admin", password: "admin" }\n'
        f'  {{ user: "worker", password: "{SECRET}", permissions: {permissions} }}\n'
        "] }\n"
    )


def _worker_url(server: Any) -> str:
    return f"nats://worker:{SECRET}@{server.host}:{server.port}"


def test_jetstream_is_off(backend: Any) -> None:
    """S09: said within 5 s, and how to switch it on."""
    with servers.NatsServer(backend.kind, jetstream=False) as server:
        with fails_within(cwist_jq.Unsupported, 5.0) as caught:
            cwist_jq.connect(server.url)
        assert "JetStream" in str(caught.value)


def test_no_right_to_the_api(make_server: Callable[..., Any], queue_name: str) -> None:
    """S10: the violation's own words, not "no responders" and not a time-out."""
    permissions = '{ publish: ["$JS.API.INFO"], subscribe: ["_INBOX.>"] }'
    server = make_server(config=_users(permissions))
    with cwist_jq.connect(_worker_url(server), operation_timeout=1.0) as conn:
        queue = conn.queue(queue_name)
        for call in (lambda: queue.enqueue(b"x"), lambda: queue.claim(1.0)):
            with fails_within(cwist_jq.Denied, 1.0) as caught:
                call()
            assert "permission" in str(caught.value).lower()
            assert SECRET not in str(caught.value)
        queue.close()


def test_no_right_to_publish_jobs(
    make_server: Callable[..., Any], queue_name: str, make_observer: Callable[[str, str], Any]
) -> None:
    """S10: a producer without the right to the subject of the queue."""
    permissions = '{ publish: ["$JS.API.>", "$JS.ACK.>"], subscribe: [">"] }'
    server = make_server(config=_users(permissions))
    admin_url = f"nats://admin:admin@{server.host}:{server.port}"
    with (
        cwist_jq.connect(_worker_url(server), operation_timeout=1.0) as conn,
        conn.queue(queue_name) as queue,
        cwist_jq.connect(admin_url) as boss,
        boss.queue(queue_name) as free,
    ):
        with fails_within(cwist_jq.Denied, 1.0) as caught:
            queue.enqueue(b"x")
        assert "ermission" in str(caught.value)
        assert f"{queue_name}.jobs" in str(caught.value)
        # The connection is not spoiled: what is allowed works.
        free.enqueue(b"allowed")
        assert must_claim(queue).payload == b"allowed"


def test_no_right_to_ack(
    make_server: Callable[..., Any], queue_name: str, make_observer: Callable[[str, str], Any]
) -> None:
    """S10: the ack says so, and the job comes back."""
    permissions = f'{{ publish: ["$JS.API.>", "{queue_name}.>"], subscribe: [">"] }}'
    server = make_server(config=_users(permissions))
    admin_url = f"nats://admin:admin@{server.host}:{server.port}"
    with (
        cwist_jq.connect(_worker_url(server), operation_timeout=1.0) as conn,
        conn.queue(queue_name, visibility_timeout=3.0) as queue,
    ):
        queue.enqueue(b"x")
        job = must_claim(queue)
        with fails_within(cwist_jq.Denied, 1.0) as caught:
            job.ack()
        assert "ermission" in str(caught.value)
    with (
        cwist_jq.connect(admin_url) as boss,
        boss.queue(queue_name, visibility_timeout=3.0) as free,
    ):
        assert drain(free, make_observer("nats", admin_url)) == [b"x"]


def test_a_wrong_password(make_server: Callable[..., Any]) -> None:
    """S10: denied, without the password in the text."""
    server = make_server(user="u", password="right")
    for credentials in (f"u:{SECRET}@", ""):
        url = f"nats://{credentials}{server.host}:{server.port}"
        with fails_within(cwist_jq.Denied, 5.0) as caught:
            cwist_jq.connect(url)
        assert SECRET not in str(caught.value)
        assert "uthori" in str(caught.value)


def _add_stream(observer: Any, name: str, **options: Any) -> None:
    settings = {"subjects": [f"{name}.jobs", f"{name}.jobs.>"], **options}
    observer.ask(lambda js: js.add_stream(name=name, **settings))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retention": "limits"}, ("retention", "limits", "workqueue")),
        ({"retention": "workqueue", "storage": "memory"}, ("storage", "memory", "file")),
    ],
    ids=["retention", "storage"],
)
def test_a_stream_of_somebody_else(
    queue: Any, observer: Any, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    """S11, S12: a conflict that names both values; the stream is left as it was."""
    _add_stream(observer, queue.name, **options)
    before = observer.stream_info(queue.name).config
    with fails_within(cwist_jq.Conflict, 5.0) as caught:
        queue.claim(1.0)
    for word in words:
        assert word in str(caught.value).lower()
    assert observer.stream_info(queue.name).config == before
    observer.wipe(queue.name)


def test_a_stream_with_other_subjects(queue: Any, observer: Any) -> None:
    """S11: neither a producer nor a worker can use it."""
    subject = f"{queue.name}-elsewhere.>"
    _add_stream(observer, queue.name, retention="workqueue", subjects=[subject])
    calls: list[Callable[[], Any]] = [lambda: queue.claim(1.0), lambda: queue.enqueue(b"x")]
    for call in calls:
        with fails_within(cwist_jq.Conflict, 5.0) as caught:
            call()
        assert f"{queue.name}-elsewhere." in str(caught.value)
        assert f"{queue.name}.jobs" in str(caught.value)
    observer.wipe(queue.name)


def test_a_consumer_of_somebody_else(queue: Any, observer: Any) -> None:
    """S11: a stale consumer of another tool blocks ours; the error names it."""
    _add_stream(observer, queue.name, retention="workqueue", storage="file")

    async def stale(js: Any) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig

        config = ConsumerConfig(durable_name="stale", ack_policy=AckPolicy.EXPLICIT)
        await js.add_consumer(queue.name, config)

    observer.ask(stale)
    with fails_within(cwist_jq.Conflict, 5.0) as caught:
        queue.claim(1.0)
    assert "consumer" in str(caught.value).lower()
    # With the other one gone, the same handle works.
    observer.ask(lambda js: js.delete_consumer(queue.name, "stale"))
    queue.enqueue(b"x")
    must_claim(queue).ack()


def test_a_consumer_whose_settings_matter(queue: Any, observer: Any) -> None:
    """S12: our consumer with another ack policy is a conflict that names both values."""
    _add_stream(observer, queue.name, retention="workqueue", storage="file")

    async def other(js: Any) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig

        config = ConsumerConfig(
            durable_name="cwist-jq",
            ack_policy=AckPolicy.EXPLICIT,
            filter_subject=f"{queue.name}.>",
            max_deliver=3,
        )
        await js.add_consumer(queue.name, config)

    observer.ask(other)
    with fails_within(cwist_jq.Conflict, 5.0) as caught:
        queue.claim(1.0)
    assert "max_deliver" in str(caught.value)
    assert "3" in str(caught.value)
    assert "no limit" in str(caught.value)


def test_too_large_leaves_the_connection_alone(
    make_server: Callable[..., Any],
    open_queue: Callable[..., Any],
    make_observer: Callable[[str, str], Any],
    queue_name: str,
) -> None:
    """P04: refused before anything is sent; a claim that waits beside it notices nothing."""
    server = make_server(max_payload=65536)
    observer = make_observer("nats", server.url)
    queue = open_queue(server.url, queue_name)
    claim = blocked_claim(queue, observer)
    start = time.monotonic()
    with pytest.raises(cwist_jq.TooLarge):
        queue.enqueue(b"x" * 70_000)
    assert time.monotonic() - start < 0.2
    assert claim.running
    queue.enqueue(b"x" * 40_000)
    job = claim.result(2.0)
    assert len(job.payload) == 40_000
    job.ack()
    assert leftovers(observer, queue_name) == []
