"""A TCP proxy that does to a connection what networks do: cut, stall, delay, refuse.

    with Proxy(server.host, server.port) as proxy:
        proxy.lose_reply_to(b"XADD")
        connect(proxy.url("redis"))

Every method may be called from any thread while traffic flows. Bytes going to the server are "up",
bytes coming from it are "down".
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass
from typing import Any, Self

UP = "up"
DOWN = "down"


@dataclass(frozen=True)
class Piece:
    """What one read gave: the connection's number, the direction, the bytes, the moment."""

    connection: int
    direction: str
    data: bytes
    moment: float


class _Link:
    """One client connection and the server connection behind it."""

    def __init__(self, number: int, client: socket.socket, server: socket.socket) -> None:
        self.number = number
        self.ends = {UP: (client, server), DOWN: (server, client)}
        self.swallow = False
        self.tail = b""
        self.pumps: list[threading.Thread] = []

    def cut(self, *, reset: bool) -> None:
        for end in self.ends[UP]:
            with contextlib.suppress(OSError):
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                # A shutdown wakes the thread that is blocked in recv; a close alone does not.
                end.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                end.close()


class Proxy:
    """Listens on a free loopback port and passes everything on to an upstream server."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._change = threading.Condition()
        self._links: dict[int, _Link] = {}
        self._pieces: list[Piece] = []
        self._budget: dict[str, int | None] = {UP: None, DOWN: None}
        self._stalled = {UP: False, DOWN: False}
        self._delay = {UP: 0.0, DOWN: 0.0}
        self._lose: bytes | None = None
        self._stall_at: bytes | None = None
        self._refusing = False
        self._reset = True
        self._crumb = 0
        self._accepted = 0
        self._tries: list[float] = []
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.host = "127.0.0.1"
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._thread.start()

    def url(self, scheme: str, credentials: str = "") -> str:
        """The proxy's own address as a URL."""
        return f"{scheme}://{credentials}{self.host}:{self.port}"

    # -- faults --

    def cut(self, *, reset: bool = True) -> int:
        """Cuts every open connection now; returns how many there were."""
        with self._change:
            links = list(self._links.values())
            self._links.clear()
            self._change.notify_all()
        for link in links:
            link.cut(reset=reset)
        # A socket is closed only when no thread is in a call on it any more.
        for link in links:
            for pump in link.pumps:
                pump.join(0.2)
        return len(links)

    def cut_after(self, count: int, direction: str, *, reset: bool = True) -> None:
        """Passes on `count` more bytes in that direction, counted over all connections, then cuts.

        Only the connection that reaches the count is cut, and only once.
        """
        with self._change:
            self._budget[direction] = count
            self._reset = reset

    def lose_reply_to(self, request: bytes, *, reset: bool = True) -> None:
        """The next connection that sends these bytes is cut when the server's reply comes.

        The server has then carried out the request, and the client cannot know.
        """
        with self._change:
            self._lose = request
            self._reset = reset

    def stall(self, *directions: str) -> None:
        """Stops passing bytes on, both ways when no direction is named; connections stay open."""
        with self._change:
            for direction in directions or (UP, DOWN):
                self._stalled[direction] = True

    def stall_at(self, request: bytes) -> None:
        """Stalls what goes up when a piece with these bytes comes; that one is held back too."""
        with self._change:
            self._stall_at = request

    @property
    def stalls(self) -> bool:
        """Whether what goes up is held back."""
        with self._change:
            return self._stalled[UP]

    def flow(self) -> None:
        """Ends stalls, delays, refusals and faults that have not struck yet."""
        with self._change:
            for direction in (UP, DOWN):
                self._stalled[direction] = False
                self._delay[direction] = 0.0
                self._budget[direction] = None
            self._lose = None
            self._stall_at = None
            self._refusing = False
            self._crumb = 0
            self._change.notify_all()

    def delay(self, seconds: float, *directions: str) -> None:
        """Holds every piece back for that long."""
        with self._change:
            for direction in directions or (UP, DOWN):
                self._delay[direction] = seconds

    def crumble(self, size: int) -> None:
        """Passes on that many bytes at a time, each a packet of its own; 0: as they come."""
        with self._change:
            self._crumb = size

    def refuse(self) -> None:
        """Closes new connections at once, as a server does that is going down."""
        with self._change:
            self._refusing = True

    def lead_to(self, host: str, port: int) -> None:
        """Sends new connections to another server; open ones stay."""
        with self._change:
            self._upstream = (host, port)

    # -- what was seen --

    @property
    def accepted(self) -> int:
        """How many connections were accepted so far."""
        return self._accepted

    @property
    def tries(self) -> list[float]:
        """The moments at which somebody tried to connect, also in vain."""
        with self._change:
            return list(self._tries)

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        with self._change:
            return len(self._links)

    def pieces(self, direction: str | None = None) -> list[Piece]:
        """What passed so far, in the order in which it was read."""
        with self._change:
            return [p for p in self._pieces if direction in (None, p.direction)]

    def sent(self) -> bytes:
        """All bytes that went to the server, one connection after the other."""
        pieces = sorted(self.pieces(UP), key=lambda piece: piece.connection)
        return b"".join(piece.data for piece in pieces)

    def commands(self) -> list[str]:
        """The names of the commands that went to the server: RESP arrays or NATS lines."""
        sent = self.sent()
        return _resp_names(sent) if sent.startswith(b"*") else _nats_names(sent)

    def forget(self) -> None:
        """Starts the record anew."""
        with self._change:
            self._pieces.clear()

    # -- life --

    def close(self) -> None:
        """Stops listening and cuts what is open."""
        with self._change:
            self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.flow()
        self.cut()
        self._thread.join(5.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- work --

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._change:
                self._tries.append(time.monotonic())
                refusing, upstream = self._refusing or self._closed, self._upstream
            try:
                server = None if refusing else socket.create_connection(upstream, timeout=5.0)
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._change:
                self._accepted += 1
                link = _Link(self._accepted, client, server)
                self._links[link.number] = link
                for direction in (UP, DOWN):
                    pump = threading.Thread(target=self._pump, args=(link, direction), daemon=True)
                    pump.start()
                    link.pumps.append(pump)

    def _pump(self, link: _Link, direction: str) -> None:
        source, target = link.ends[direction]
        reset = False
        while True:
            try:
                data = source.recv(65536)
            except OSError:
                break
            if not data or not self._hold(link, direction, data):
                break
            data, cut_now = self._judge(link, direction, data)
            size = self._crumb or len(data)
            with contextlib.suppress(OSError):
                for place in range(0, len(data), size or 1):
                    target.sendall(data[place : place + size])
            if cut_now:
                reset = self._reset
                break
        with self._change:
            self._links.pop(link.number, None)
            self._change.notify_all()
        link.cut(reset=reset)

    def _hold(self, link: _Link, direction: str, data: bytes) -> bool:
        """Waits out delays and stalls; False when the connection was cut meanwhile."""
        if self._delay[direction]:
            time.sleep(self._delay[direction])
        with self._change:
            if direction == UP and self._stall_at is not None and self._stall_at in data:
                self._stall_at = None
                self._stalled[UP] = True
            while self._stalled[direction] and link.number in self._links:
                self._change.wait()
            return link.number in self._links

    def _judge(self, link: _Link, direction: str, data: bytes) -> tuple[bytes, bool]:
        """Records a piece; returns what of it is passed on, and whether the cut comes then."""
        with self._change:
            self._pieces.append(Piece(link.number, direction, data, time.monotonic()))
            if direction == DOWN and link.swallow:
                return b"", True
            if direction == UP and self._lose is not None:
                link.tail += data
                if self._lose in link.tail:
                    self._lose, link.swallow = None, True
                link.tail = link.tail[-1024:]
            budget = self._budget[direction]
            if budget is None:
                return data, False
            if len(data) < budget:
                self._budget[direction] = budget - len(data)
                return data, False
            self._budget[direction] = None
            return data[:budget], True


def _resp_names(data: bytes) -> list[str]:
    names: list[str] = []
    place = 0
    while place < len(data) and data[place : place + 1] == b"*":
        end = data.find(b"\r\n", place)
        if end < 0:
            break
        count, place = int(data[place + 1 : end]), end + 2
        for number in range(count):
            end = data.find(b"\r\n", place)
            if end < 0:
                return names
            size = int(data[place + 1 : end])
            if number == 0:
                names.append(data[end + 2 : end + 2 + size].decode("latin-1").upper())
            place = end + 2 + size + 2
    return names


def _nats_names(data: bytes) -> list[str]:
    names: list[str] = []
    place = 0
    while place < len(data):
        end = data.find(b"\r\n", place)
        if end < 0:
            break
        words: list[Any] = data[place:end].split()
        place = end + 2
        if not words:
            continue
        verb = words[0].decode("latin-1").upper()
        if verb in ("PUB", "HPUB"):
            names.append(f"{verb} {words[1].decode('latin-1')}")
            place += int(words[-1]) + 2
        else:
            names.append(verb)
    return names
