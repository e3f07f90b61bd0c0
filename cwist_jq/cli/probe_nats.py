"""A small reader of NATS JetStream, for facts that the queue's API does not tell.

Threads: one at a time.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from typing import Any, NamedTuple

from cwist_jq.cli.address import Address, client_context, open_socket
from cwist_jq.cli.probe import ProbeFailed, Refusal

__all__ = ["Message", "NatsProbe", "parse_headers", "stream_name", "version_of"]

NO_RESPONDERS = 503


class Message(NamedTuple):
    """What came on a subject."""

    subject: str
    status: int  # of the first header line; 0: none
    headers: dict[str, str]
    body: bytes


class NatsProbe:
    """A connection to the first server of the list that answers. Use it as a context manager."""

    def __init__(self, address: Address, timeout: float) -> None:
        """Connects and authenticates."""
        self._timeout = timeout
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._count = 0
        self._pings = 0  # that were not answered yet
        self._violations: list[str] = []
        problem: Exception | None = None
        for host, port in address.hosts:
            try:
                self._open(address, host, port)
            except (OSError, ProbeFailed) as error:
                problem = error
            else:
                return
        raise ProbeFailed(f"no connection: {problem}")

    def _open(self, address: Address, host: str, port: int) -> None:
        self._socket = open_socket(host, port, self._timeout)
        # INFO is read byte by byte: what follows it may be TLS.
        line = b""
        while not line.endswith(b"\n"):
            piece = self._socket.recv(1)
            if not piece:
                raise ProbeFailed("the server closed the connection")
            line += piece
        if not line.startswith(b"INFO "):
            raise ProbeFailed("this is no NATS server")
        self.info: dict[str, Any] = json.loads(line[5:])
        if address.encrypted:
            context = client_context(address.options)
            self._socket = context.wrap_socket(self._socket, server_hostname=host.rstrip("."))
        self._stream = self._socket.makefile("rb")
        hello: dict[str, Any] = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "name": "cwist-jq",
            "lang": "python",
            "version": "1",
            "protocol": 1,
        }
        if address.user is not None and address.password is not None:
            hello.update(user=address.user, **{"pass": address.password})
        elif address.user is not None or address.password is not None:
            hello["auth_token"] = address.user or address.password
        self._send(f"CONNECT {json.dumps(hello)}\r\nSUB {self._inbox}.* 1\r\n".encode())
        missed = self.settle()
        if missed:
            raise ProbeFailed(f"the server says: {missed[0]}")

    # ---- questions ----

    def api(self, name: str, question: dict[str, Any] | None = None) -> dict[str, Any]:
        """Asks $JS.API.<name>; Refusal carries the server's err_code."""
        body = json.dumps(question).encode() if question else b""
        reply = self.request(f"$JS.API.{name}", body)
        if reply.status == NO_RESPONDERS:
            raise Refusal("nobody answers: JetStream is off", NO_RESPONDERS)
        found: dict[str, Any] = json.loads(reply.body)
        error = found.get("error")
        if error is not None:
            raise Refusal(error.get("description", "error"), error.get("err_code", 0))
        return found

    def request(
        self, subject: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Message:
        """Sends a message and returns the answer; Refusal when it is not permitted."""
        self._count += 1
        inbox = f"{self._inbox}.{self._count}"
        self.publish(subject, body, headers, reply=inbox)
        self._ping()  # what is not permitted is told before the answer to it
        end = time.monotonic() + self._timeout
        while time.monotonic() < end:
            message = self._next()
            if message is not None and message.subject == inbox:
                return message
            if self._violations:
                raise Refusal(self._violations.pop(0))
        raise ProbeFailed(f"no answer on {subject} within {self._timeout:g} s")

    def publish(
        self, subject: str, body: bytes, headers: dict[str, str] | None = None, *, reply: str = ""
    ) -> None:
        """Sends a message."""
        if headers:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            block = f"NATS/1.0\r\n{lines}\r\n".encode()
            word = f"HPUB {subject} {reply} {len(block)} {len(block) + len(body)}\r\n".encode()
            self._send(word + block + body + b"\r\n")
        else:
            self._send(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def settle(self) -> list[str]:
        """Waits until the server has seen all that was sent; the permissions that it missed."""
        self._ping()
        end = time.monotonic() + self._timeout
        while time.monotonic() < end:
            self._line()
            if self._pings == 0:
                missed, self._violations = self._violations, []
                return missed
        raise ProbeFailed(f"no answer within {self._timeout:g} s")

    # ---- the protocol ----

    def _ping(self) -> None:
        self._pings += 1
        self._send(b"PING\r\n")

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ProbeFailed(f"no connection: {error}") from None

    def _read_line(self) -> bytes:
        try:
            line = self._stream.readline()
        except OSError as error:
            raise ProbeFailed(f"no answer: {error}") from None
        if not line:
            raise ProbeFailed("the server closed the connection")
        return line.rstrip(b"\r\n")

    def _line(self) -> bytes:
        """The next line of the protocol; a message's body follows it."""
        line = self._read_line()
        if line == b"PING":
            self._send(b"PONG\r\n")
        elif line == b"PONG":
            self._pings -= 1
        elif line.startswith(b"-ERR"):
            text = line[4:].strip().strip(b"'").decode("utf-8", "replace")
            if "ermissions Violation" not in text:
                raise ProbeFailed(f"the server says: {text}")
            self._violations.append(text)
        elif line.startswith((b"MSG ", b"HMSG ")):
            self._last = self._message(line)
        return line

    def _next(self) -> Message | None:
        return self._last if self._line().startswith((b"MSG ", b"HMSG ")) else None

    def _message(self, line: bytes) -> Message:
        words = line.split()
        size = int(words[-1])
        data = self._stream.read(size + 2)[:size]
        block = b""
        if words[0] == b"HMSG":
            cut = int(words[-2])
            block, data = data[:cut], data[cut:]
        status = re.match(rb"NATS/1\.0 +(\d+)", block)
        return Message(
            words[1].decode(), int(status[1]) if status else 0, parse_headers(block), data
        )

    def close(self) -> None:
        """Closes the connection."""
        with contextlib.suppress(OSError):
            self._stream.close()
            self._socket.close()

    def __enter__(self) -> NatsProbe:  # noqa: PYI034 (Self is not in Python 3.9)
        """Returns the probe."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()


def parse_headers(block: bytes) -> dict[str, str]:
    """The headers of a message."""
    lines = block.decode("utf-8", "surrogateescape").split("\r\n")[1:]
    return {
        name: value.strip(" ")
        for name, colon, value in (line.partition(":") for line in lines)
        if colon
    }


def stream_name(queue: str) -> str:
    """The name of a queue's stream."""
    return queue.replace(".", "=2E").replace(":", "=3A")


def version_of(info: dict[str, Any]) -> tuple[int, int]:
    """Major and minor version out of INFO."""
    found = re.match(r"(\d+)\.(\d+)", str(info.get("version", "")))
    return (int(found[1]), int(found[2])) if found else (0, 0)
