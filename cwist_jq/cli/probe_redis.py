"""A small reader of Redis, for facts that the queue's API does not tell.

Threads: one at a time.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Union

from cwist_jq.cli.address import Address, client_context, open_socket
from cwist_jq.cli.probe import ProbeFailed, Refusal

__all__ = ["RedisProbe", "pairs"]

Word = Union[bytes, str, int]

_MOVES = 3  # redirections of a cluster, at most


class RedisProbe:
    """A connection to one server. Use it as a context manager.

    call() returns None, int, bytes or a list of such.
    """

    def __init__(self, address: Address, timeout: float) -> None:
        """Connects and authenticates."""
        self._address = address
        self._timeout = timeout
        self._place = address.hosts[0] if address.hosts else None
        self._connect()
        self._info: dict[str, str] | None = None

    def _connect(self) -> None:
        try:
            self._socket = self._dial()
        except OSError as error:
            raise ProbeFailed(f"no connection: {error}") from None
        self._stream = self._socket.makefile("rb")
        address = self._address
        if address.password is not None:
            words = [address.password] if address.user is None else [address.user, address.password]
            self._call("AUTH", *words)
        if address.database:
            self._call("SELECT", address.database)

    def _dial(self) -> socket.socket:
        if self._place is None:
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(self._timeout)
            made.connect(self._address.path)
            return made
        made = open_socket(*self._place, self._timeout)
        if self._address.encrypted:
            context = client_context(self._address.options)
            made = context.wrap_socket(made, server_hostname=self._place[0].rstrip("."))
        return made

    @property
    def user(self) -> str:
        """The name that the URL gives."""
        return self._address.user or "default"

    def call(self, *words: Word) -> Any:
        """Sends a command, to the node that has the key; Refusal is an error reply."""
        for _ in range(_MOVES):
            try:
                return self._call(*words)
            except Refusal as refusal:
                reply = str(refusal).split()
                if reply[:1] != ["MOVED"]:
                    raise
                host, _, port = reply[2].rpartition(":")
                self.close()
                self._place = (host or (self._place or ("", 0))[0], int(port))
                self._connect()
        raise ProbeFailed("the cluster sends the question from node to node")

    def _call(self, *words: Word) -> Any:
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        packet = b"*%d\r\n" % len(parts)
        packet += b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        try:
            self._socket.sendall(packet)
            answer = self._reply()
        except (OSError, ValueError) as error:
            raise ProbeFailed(f"no answer to {parts[0].decode()}: {error}") from None
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def _reply(self) -> Any:
        line = self._stream.readline()
        if not line.endswith(b"\r\n"):
            raise ProbeFailed("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return Refusal(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        count = int(rest)
        if count < 0:
            return None
        if kind == b"$":
            body = self._stream.read(count + 2)
            if len(body) != count + 2:
                raise ProbeFailed("the server closed the connection")
            return body[:-2]
        if kind == b"*":
            return [self._reply() for _ in range(count)]
        raise ProbeFailed("this is no Redis server")

    def info(self) -> dict[str, str]:
        """All of INFO, read once."""
        if self._info is None:
            text = self.call("INFO", "default").decode("utf-8", "replace")
            lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
            self._info = {name: value for name, _, value in lines}
        return self._info

    def config(self, name: str) -> str | None:
        """A setting; None when it is not there."""
        found = pairs(self.call("CONFIG", "GET", name))
        return found.get(name.encode(), b"").decode() if found else None

    def prefix(self, queue: str) -> str:
        """What the keys of a queue begin with."""
        return f"cwist:jq:{{{queue}}}:" if self.is_cluster() else f"cwist:jq:{queue}:"

    def is_cluster(self) -> bool:
        """Whether it is a cluster; a user who may not ask INFO is told by CLUSTER or HELLO."""
        try:
            return self.info().get("cluster_enabled") == "1"
        except Refusal:
            pass
        with contextlib.suppress(Refusal):
            return pairs(self.call("HELLO")).get(b"mode") == b"cluster"
        return False

    def close(self) -> None:
        """Closes the connection."""
        with contextlib.suppress(OSError):
            self._stream.close()
            self._socket.close()

    def __enter__(self) -> RedisProbe:  # noqa: PYI034 (Self is not in Python 3.9)
        """Returns the probe."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()


def pairs(flat: list[Any]) -> dict[Any, Any]:
    """A flat list of names and values as a dict."""
    return dict(zip(flat[::2], flat[1::2]))
