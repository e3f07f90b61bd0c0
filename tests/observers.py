"""Looks at a queue on the server through other people's clients, never through our library.

Both observers have the same methods, so that a test is written once. What they know of the layout
comes from docs/wire-format.md alone.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import re
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

GROUP = "cwist-jq"
MARK = b"\xc1"

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Stored:
    """A message as a NATS stream holds it."""

    seq: int
    subject: str
    data: bytes
    #: The header block, byte for byte.
    block: bytes
    #: When the server stored it, in milliseconds since 1970.
    time_ms: int

    @property
    def headers(self) -> dict[str, str]:
        """The headers, bytes that are no UTF-8 as surrogates."""
        lines = self.block.decode("utf-8", "surrogateescape").split("\r\n")[1:]
        pairs = (line.split(":", 1) for line in lines if line)
        return {name: value.strip(" ") for name, value in pairs}


@dataclass(frozen=True)
class DeadLetter:
    """A dead job as it stands on the server."""

    id: str
    type: str | None
    payload: bytes | None
    attempts: int
    cause: str
    reason: str | None
    first_ms: int
    last_ms: int
    consumer: str | None
    #: Fields or headers that are not ours.
    others: dict[str, bytes] = field(default_factory=dict)


class Observer(Protocol):
    """What tests ask about a queue, on either engine."""

    engine: str

    def ready_and_claimed(self, queue: str) -> int:
        """Jobs that are stored and neither dead nor waiting for a due time kept apart."""

    def claimed(self, queue: str) -> int:
        """Deliveries that the server holds as not yet acknowledged."""

    def delayed(self, queue: str) -> int:
        """Jobs in the delay store; NATS keeps nacked jobs among the claimed ones instead."""

    def dead(self, queue: str) -> list[DeadLetter]:
        """All dead letters, oldest first."""

    def leftovers(self, queue: str) -> list[str]:
        """What a drained queue must not hold, in words; empty when all is clean."""

    def visibility_ms(self, queue: str) -> int | None:
        """The visibility that the server keeps, or None when no claim has set one."""

    def put(self, queue: str, payload: bytes, type: str | None = None) -> str:
        """Enqueues as a foreign program would; returns the id."""

    def wipe(self, queue: str) -> None:
        """Deletes all storage of the queue, as an operator's mistake does."""

    def close(self) -> None:
        """Lets the connections go."""


def _packed(data: bytes) -> list[bytes]:
    """Splits packed strings: four bytes of length, big-endian, then that many bytes."""
    found: list[bytes] = []
    place = 0
    while place < len(data):
        (size,) = struct.unpack_from(">I", data, place)
        place += 4
        if place + size > len(data):
            raise ValueError("a packed string is cut short")
        found.append(data[place : place + size])
        place += size
    return found


def _text(data: bytes | str | None) -> str | None:
    if isinstance(data, bytes):
        data = data.decode("utf-8", "surrogateescape")
    return data or None


class RedisObserver:
    """Looks through redis-py."""

    engine = "redis"

    def __init__(self, url: str) -> None:
        import redis

        # The client has a name of its own for the file that says whom to trust.
        self.client: Any = redis.Redis.from_url(
            url.replace("?tls_ca=", "?ssl_ca_certs="), protocol=2
        )

    @staticmethod
    def key(queue: str, suffix: str) -> str:
        """The name of one of the queue's keys."""
        return f"cwist:jq:{queue}:{suffix}"

    def keys(self, queue: str) -> list[str]:
        """The names of the queue's keys that exist, prefix left off."""
        prefix = self.key(queue, "")
        pattern = "".join(f"\\{c}" if c in "*?[]\\" else c for c in prefix) + "*"
        found = (key.decode()[len(prefix) :] for key in self.client.scan_iter(match=pattern))
        return sorted(found)

    def ready_and_claimed(self, queue: str) -> int:
        return int(self.client.xlen(self.key(queue, "s")))

    def pending(self, queue: str) -> list[dict[str, Any]]:
        """The group's pending entries."""
        stream = self.key(queue, "s")
        if not self.client.exists(stream) or not self.client.xinfo_groups(stream):
            return []
        found: list[dict[str, Any]] = self.client.xpending_range(stream, GROUP, "-", "+", 100000)
        return found

    def claimed(self, queue: str) -> int:
        return len(self.pending(queue))

    def entries(self, queue: str) -> list[tuple[str, dict[bytes, bytes]]]:
        """The entries of the stream."""
        found = self.client.xrange(self.key(queue, "s"))
        return [(entry.decode(), fields) for entry, fields in found]

    def delayed(self, queue: str) -> int:
        return int(self.client.zcard(self.key(queue, "delay")))

    def waiting(self, queue: str) -> dict[str, dict[str, bytes]]:
        """The fields of every waiting job, by job id."""
        found: dict[str, dict[str, bytes]] = {}
        for job_id, body in self.client.hgetall(self.key(queue, "wait")).items():
            if not body.startswith(MARK):
                raise ValueError("a body without the mark of the format")
            parts = _packed(body[1:])
            names = [name.decode() for name in parts[::2]]
            found[job_id.decode()] = dict(zip(names, parts[1::2], strict=True))
        return found

    def dedupe(self, queue: str) -> dict[str, str]:
        """The dedupe keys and the jobs that have them: "<id> <entry>", or "<id> -"."""
        found = self.client.hgetall(self.key(queue, "dedupe"))
        return {key.decode(): value.decode() for key, value in found.items()}

    def dead(self, queue: str) -> list[DeadLetter]:
        bodies = self.client.hgetall(self.key(queue, "deadbody"))
        records = self.client.lrange(self.key(queue, "dead"), 0, -1)
        return [self._letter(record, bodies) for record in records]

    @staticmethod
    def _letter(record: bytes, bodies: dict[bytes, bytes]) -> DeadLetter:
        if not record.startswith(MARK):
            raise ValueError("a dead record without the mark of the format")
        head, rest = _packed(record[1:])[:8], _packed(record[1:])[8:]
        job_id, kind, attempts, cause, reason, first, last, consumer = head
        names = [name.decode("utf-8", "surrogateescape") for name in rest[::2]]
        return DeadLetter(
            id=job_id.decode(),
            type=_text(kind),
            payload=bodies.get(job_id),
            attempts=int(attempts),
            cause=cause.decode(),
            reason=_text(reason),
            first_ms=int(first),
            last_ms=int(last.split(b"-")[0]),
            consumer=_text(consumer),
            others=dict(zip(names, rest[1::2], strict=True)),
        )

    def leftovers(self, queue: str) -> list[str]:
        found = [f"key {name}" for name in self.keys(queue) if name not in ("s", "conf")]
        if self.ready_and_claimed(queue):
            found.append(f"{self.ready_and_claimed(queue)} entries")
        if self.claimed(queue):
            found.append(f"{self.claimed(queue)} pending")
        return found

    def visibility_ms(self, queue: str) -> int | None:
        value = self.client.hget(self.key(queue, "conf"), "visibility")
        return None if value is None else int(value)

    def put(self, queue: str, payload: bytes, type: str | None = None) -> str:
        fields: dict[str, Any] = {"type": type or "", "payload": payload}
        added: bytes = self.client.xadd(self.key(queue, "s"), fields)
        return added.decode()

    def wipe(self, queue: str) -> None:
        names = [self.key(queue, name) for name in self.keys(queue)]
        if names:
            self.client.delete(*names)

    def close(self) -> None:
        self.client.close()


class NatsObserver:
    """Looks through nats-py, with a new connection for each question."""

    engine = "nats"

    def __init__(self, url: str) -> None:
        import nats.aio.client
        import nats.js.errors

        parts = urlsplit(url)
        self._options: dict[str, Any] = {
            "servers": f"nats://{parts.hostname}:{parts.port}",
            "allow_reconnect": False,
            "connect_timeout": 5,
        }
        if parts.username is not None:
            # The client takes credentials in a URL as they stand, without decoding them.
            self._options["user"] = unquote(parts.username)
            self._options["password"] = unquote(parts.password or "")
        if parts.scheme == "tls":
            (authority,) = parse_qs(parts.query)["tls_ca"]
            self._options["tls"] = ssl.create_default_context(cafile=authority)
        self._client_class = nats.aio.client.Client
        self._not_found = nats.js.errors.NotFoundError
        self._loop = asyncio.new_event_loop()

    def ask(self, question: Callable[[Any], Awaitable[_Result]]) -> _Result:
        """Runs question(jetstream context) on a connection of its own."""

        async def run() -> _Result:
            client = self._client_class()
            await client.connect(**self._options)
            try:
                return await question(client.jetstream())
            finally:
                await client.close()

        return self._loop.run_until_complete(run())

    def is_at_least(self, major: int, minor: int) -> bool:
        """Whether the server has this version or a newer one."""

        async def version(js: Any) -> tuple[int, int]:
            found = js._nc.connected_server_version
            return (found.major, found.minor)

        return self.ask(version) >= (major, minor)

    @staticmethod
    def stream(queue: str) -> str:
        """The name of the queue's stream."""
        return queue.replace(".", "=2E").replace(":", "=3A")

    async def _maybe(self, answer: Awaitable[_Result]) -> _Result | None:
        try:
            return await answer
        except self._not_found:
            return None

    def stream_info(self, name: str) -> Any:
        """What the server says of a stream, or None."""
        return self.ask(lambda js: self._maybe(js.stream_info(name)))

    def consumer_info(self, queue: str) -> Any:
        """What the server says of the queue's consumer, or None."""
        return self.ask(lambda js: self._maybe(js.consumer_info(self.stream(queue), GROUP)))

    def messages(self, stream: str) -> list[Stored]:
        """The messages that a stream holds, in order."""

        async def read(js: Any) -> list[Stored]:
            found: list[Stored] = []
            seq = 1
            # nats-server 2.9 crashes when it is asked for a message of a stream that it is making.
            if await self._maybe(js.stream_info(stream)) is None:
                return found
            while True:
                request = json.dumps({"seq": seq, "next_by_subj": ">"}).encode()
                reply = await js._nc.request(f"$JS.API.STREAM.MSG.GET.{stream}", request, timeout=5)
                answer = json.loads(reply.data)
                if "message" not in answer:
                    if answer["error"]["code"] != 404:
                        raise RuntimeError(answer["error"])
                    return found
                found.append(self._stored(answer["message"]))
                seq = found[-1].seq + 1

        return self.ask(read)

    @staticmethod
    def _stored(message: dict[str, Any]) -> Stored:
        # Nanoseconds, and zeroes at the end left off: more digits than datetime reads.
        moment = re.sub(r"(\.\d{1,6})\d*", r"\1", message["time"].replace("Z", "+00:00"))
        return Stored(
            seq=message["seq"],
            subject=message["subject"],
            data=base64.b64decode(message.get("data", "")),
            block=base64.b64decode(message.get("hdrs", "")),
            time_ms=int(dt.datetime.fromisoformat(moment).timestamp() * 1000),
        )

    def ready_and_claimed(self, queue: str) -> int:
        info = self.stream_info(self.stream(queue))
        return 0 if info is None else int(info.state.messages) - self.delayed(queue)

    def claimed(self, queue: str) -> int:
        info = self.consumer_info(queue)
        return 0 if info is None else int(info.num_ack_pending or 0)

    def delayed(self, queue: str) -> int:
        stream = self.stream(queue)

        async def count(js: Any) -> int:
            request = json.dumps({"subjects_filter": f"{stream}=wait.>"}).encode()
            reply = await js._nc.request(f"$JS.API.STREAM.INFO.{stream}", request, timeout=5)
            state = json.loads(reply.data).get("state", {})
            return sum((state.get("subjects") or {}).values())

        return self.ask(count)

    def dead(self, queue: str) -> list[DeadLetter]:
        messages = self.messages(self.stream(queue) + "_DEAD")
        return [self._letter(message) for message in messages]

    @staticmethod
    def _letter(message: Stored) -> DeadLetter:
        headers = message.headers
        reason = headers.pop("Cwist-Reason", None)
        kind = headers.pop("Cwist-Type", None)
        quoted = headers.pop("Cwist-Type-Quoted", None)
        letter = DeadLetter(
            id=headers.pop("Cwist-Id", ""),
            type=kind if quoted is None else quoted[1:-1],
            payload=message.data,
            attempts=int(headers.pop("Cwist-Attempts", "-1")),
            cause=headers.pop("Cwist-Cause", ""),
            reason=None if reason is None else _text(unquote_to_bytes(reason)),
            first_ms=int(headers.pop("Cwist-First", "0")),
            last_ms=message.time_ms,
            consumer=headers.pop("Cwist-Consumer", None),
        )
        for name, value in headers.items():
            if not name.startswith("Nats-"):
                letter.others[name] = value.encode("utf-8", "surrogateescape")
        return letter

    def leftovers(self, queue: str) -> list[str]:
        found = []
        for name in (self.stream(queue), self.stream(queue) + "_DEAD"):
            info = self.stream_info(name)
            if info is not None and info.state.messages:
                found.append(f"{info.state.messages} messages in {name}")
        if self.claimed(queue):
            found.append(f"{self.claimed(queue)} pending")
        return found

    def visibility_ms(self, queue: str) -> int | None:
        info = self.consumer_info(queue)
        return None if info is None else round(info.config.ack_wait * 1000)

    def put(self, queue: str, payload: bytes, type: str | None = None) -> str:
        stream = self.stream(queue)
        headers = None if type is None else {"Cwist-Type": type}

        async def publish(js: Any) -> str:
            from nats.js.api import RetentionPolicy, StorageType

            if await self._maybe(js.stream_info(stream)) is None:
                await js.add_stream(
                    name=stream,
                    subjects=[f"{stream}.jobs", f"{stream}.jobs.>"],
                    retention=RetentionPolicy.WORK_QUEUE,
                    storage=StorageType.FILE,
                )
            return str((await js.publish(f"{stream}.jobs", payload, headers=headers)).seq)

        return self.ask(publish)

    def wipe(self, queue: str) -> None:
        for name in (self.stream(queue), self.stream(queue) + "_DEAD"):
            self.ask(lambda js, name=name: self._maybe(js.delete_stream(name)))  # type: ignore[misc]

    def close(self) -> None:
        self._loop.close()


def observe(engine: str, url: str) -> Observer:
    """The observer for an engine."""
    if engine == "memory":
        from .memory_observer import MemoryObserver

        return MemoryObserver(url)
    return RedisObserver(url) if engine == "redis" else NatsObserver(url)
