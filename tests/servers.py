"""Private Redis and NATS servers for tests, demos and benchmarks.

Every server listens on a free loopback port, never on a default one, and keeps its data in a temp
folder of its own. It ends with the process that started it, also when that process is killed.

    with RedisServer() as server:
        print(server.url)

From a shell, with the servers' addresses in the environment of the command:

    python -m tests.servers run redis=6.2.14 nats=2.15.1 -- COMMAND ARGUMENT…
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import quote

from . import watchdog
from .certificates import Certificates

ROOT = Path(__file__).resolve().parent.parent
STRICT_VARIABLE = "CWIST_TEST_REQUIRE_DURABLE_QUEUE"
THOROUGH_VARIABLE = "CWIST_TEST_THOROUGH"
FOLDER_VARIABLE = "CWIST_TEST_SERVERS"

with open(Path(__file__).with_name("servers.toml"), "rb") as _file:
    SOURCES: dict[str, dict[str, dict[str, str]]] = tomllib.load(_file)

#: All kinds of each engine; the first one is the pinned server.
KINDS: dict[str, list[str]] = {engine: list(kinds) for engine, kinds in SOURCES.items()}

#: The kind of each engine that can do TLS; the pinned Redis is built without.
TLS_KINDS: dict[str, str] = {"redis": "distribution", "nats": KINDS["nats"][0]}

#: The scheme of an encrypted connection to each engine.
TLS_SCHEMES = {"redis": "rediss", "nats": "tls"}

#: Below the range from which Linux takes the ports of outgoing connections, so that a stopped
#: server's port is still free when it starts again. No default port is in it.
PORTS = (20000, 32000)


class Unavailable(Exception):
    """The server cannot be run here: its program is missing, or it lacks JetStream."""


class StartFailed(Exception):
    """The server's program is there, but it did not come up."""


def strict() -> bool:
    """Whether a missing backend is a failure (SPEC: the gate)."""
    return os.environ.get(STRICT_VARIABLE, "") not in ("", "0")


def thorough() -> bool:
    """Whether slow tests run on every server too, and connections are cut at more places."""
    return os.environ.get(THOROUGH_VARIABLE, "") not in ("", "0")


def servers_folder() -> Path:
    """Where the servers' programs are kept."""
    return Path(os.environ.get(FOLDER_VARIABLE) or ROOT / ".servers")


def pinned(engine: str) -> str:
    """The kind of an engine that must always be there."""
    return KINDS[engine][0]


def known_absent(engine: str, kind: str) -> bool:
    """Whether set-up found that the distribution has no such server."""
    return (servers_folder() / f"{engine}-{kind}" / "absent").exists()


def program(engine: str, kind: str) -> Path:
    """The server's program, or Unavailable."""
    path = servers_folder() / f"{engine}-{kind}" / f"{engine}-server"
    if kind not in KINDS.get(engine, []):
        raise ValueError(f"unknown kind of {engine} server: {kind}")
    if not os.access(path, os.X_OK):
        raise Unavailable(f"no {engine} server {kind} at {path} (make setup puts it there)")
    return path


def available(engine: str) -> list[str]:
    """The kinds of an engine whose program is there."""
    return [
        k
        for k in KINDS[engine]
        if os.access(servers_folder() / f"{engine}-{k}" / f"{engine}-server", os.X_OK)
    ]


def free_port() -> int:
    """A loopback port that nothing listens on."""
    for _ in range(200):
        port = random.randrange(*PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StartFailed("no free loopback port found")


@dataclass(frozen=True)
class Tls:
    """How a server encrypts."""

    certificates: Certificates
    #: The name of the server's own certificate.
    own: str = "good"
    #: Whether clients must show a certificate.
    clients: bool = False

    def file(self, name: str) -> str:
        """A path, as a text for a server's configuration."""
        return str(self.certificates.file(name))


class Server:
    """What the two kinds of server share. Use it as a context manager."""

    engine: ClassVar[str]
    host = "127.0.0.1"
    user: str | None = None
    password: str | None = None

    def __init__(self, kind: str | None, port: int | None, tls: Tls | None) -> None:
        self.kind = kind or pinned(self.engine)
        self.program = program(self.engine, self.kind)
        self._port_is_given = port is not None
        self.port = port or 0
        self.folder = Path(tempfile.mkdtemp(prefix=f"cwist-jq-{self.engine}-"))
        watchdog.watch_folder(str(self.folder))
        self.log = self.folder / "log"
        self.tls = tls
        self._process: subprocess.Popen[bytes] | None = None

    # -- what an engine adds --

    def _arguments(self) -> list[str]:
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The URL for clients, credentials included."""
        raise NotImplementedError

    @property
    def tls_port(self) -> int:
        """Where it takes encrypted connections."""
        return self.port

    @property
    def tls_url(self) -> str:
        """The URL for encrypted connections, which trusts the tests' own authority."""
        assert self.tls is not None
        scheme = TLS_SCHEMES[self.engine]
        address = f"{_credentials(self.user, self.password)}{self.host}:{self.tls_port}"
        return f"{scheme}://{address}{self.tls.certificates.query}"

    # -- life --

    @property
    def pid(self) -> int:
        """The server's process id; an error when it is not running."""
        if self._process is None:
            raise RuntimeError(f"the {self.engine} server is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = 20.0) -> None:
        """Starts the server on its port and returns when it answers."""
        if self.running:
            return
        tries = 1 if self.port else 5
        for attempt in range(tries):
            if not self.port or (attempt and not self._port_is_given):
                self._choose_ports()
            try:
                self._start_once(timeout)
                return
            except StartFailed:
                self.kill()
                if attempt == tries - 1:
                    raise

    def _choose_ports(self) -> None:
        self.port = free_port()

    def _start_once(self, timeout: float) -> None:
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._arguments(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        watchdog.watch(self._process.pid)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                if self._answers():
                    return
            time.sleep(0.005)
        raise StartFailed(f"{self.engine} server {self.kind} did not come up:\n{self.log_tail()}")

    def stop(self, timeout: float = 20.0) -> None:
        """Asks the server to end and waits for it; data and port are kept."""
        self._end(signal.SIGTERM, timeout)

    def kill(self) -> None:
        """Ends the server as a crash does."""
        self._end(watchdog.CRASH, 20.0)

    def _end(self, how: signal.Signals, timeout: float) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            if sys.platform != "win32":
                process.send_signal(signal.SIGCONT)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        watchdog.forget(process.pid)
        self._process = None

    def restart(self, *, crash: bool = False, down: float = 0.0) -> None:
        """Ends the server, politely or as a crash does, and starts it on the same port and data."""
        if crash:
            self.kill()
        else:
            self.stop()
        time.sleep(down)
        self.start()

    def pause(self) -> None:
        """Freezes the process: connections stay open, nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Ends a pause."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the server and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log_tail(self, lines: int = 20) -> str:
        """The end of the server's own log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, send: bytes) -> bytes:
        """Sends bytes on a new connection and returns the first line of the answer."""
        with socket.create_connection((self.host, self.port), timeout=1.0) as conn:
            if send:
                conn.sendall(send)
            answer = b""
            while not answer.endswith(b"\n"):
                piece = conn.recv(65536)
                if not piece:
                    break
                answer += piece
            return answer


class RedisServer(Server):
    """A Redis server.

    appendonly: None keeps nothing on disk; "everysec", "always" or "no" is the AOF's fsync rule.
    maxmemory:  bytes, with noeviction; None is no limit.
    acl:        the text of an ACL file; `user` and `password` are then what `url` carries.
    password:   alone, the password of the default user.
    config:     further settings, name to value.
    arguments:  further words of the command line.
    tls:        takes encrypted connections, on a port of their own.
    """

    engine = "redis"

    def __init__(
        self,
        kind: str | None = None,
        *,
        appendonly: str | None = None,
        maxmemory: int | None = None,
        acl: str | None = None,
        user: str | None = None,
        password: str | None = None,
        unix_socket: bool = False,
        config: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        port: int | None = None,
        tls: Tls | None = None,
    ) -> None:
        super().__init__(kind, port, tls)
        self.user = user
        self.password = password
        self._tls_port = free_port() if tls is not None else 0
        self.socket_path = self.folder / "socket" if unix_socket else None
        settings: dict[str, object] = {"save": "", "dir": self.folder, "bind": self.host}
        settings["appendonly"] = "no" if appendonly is None else "yes"
        if appendonly is not None:
            settings["appendfsync"] = appendonly
        if maxmemory is not None:
            settings.update({"maxmemory": maxmemory, "maxmemory-policy": "noeviction"})
        if acl is not None:
            (self.folder / "acl").write_text(acl)
            settings["aclfile"] = self.folder / "acl"
        elif password is not None:
            settings["requirepass"] = password
        if self.socket_path is not None:
            settings["unixsocket"] = self.socket_path
        if tls is not None:
            settings["tls-cert-file"] = tls.file(f"{tls.own}.pem")
            settings["tls-key-file"] = tls.file(f"{tls.own}.key")
            settings["tls-ca-cert-file"] = tls.file("ca.pem")
            settings["tls-auth-clients"] = "yes" if tls.clients else "no"
        settings.update(config or {})
        self._settings = settings
        self._extra = list(arguments)

    def _choose_ports(self) -> None:
        super()._choose_ports()
        if self._tls_port:
            self._tls_port = free_port()

    def _arguments(self) -> list[str]:
        words = [str(self.program), "--port", str(self.port)]
        if self._tls_port:
            words += ["--tls-port", str(self._tls_port)]
        for name, value in self._settings.items():
            words += [f"--{name}", str(value)]
        return words + self._extra

    def _answers(self) -> bool:
        answer = self._exchange(b"PING\r\n")
        return answer.startswith((b"+PONG", b"-NOAUTH", b"-NOPERM"))

    @property
    def url(self) -> str:
        """redis://[user:password@]host:port"""
        return f"redis://{_credentials(self.user, self.password)}{self.host}:{self.port}"

    @property
    def tls_port(self) -> int:
        """Where it takes encrypted connections."""
        return self._tls_port

    @property
    def unix_url(self) -> str:
        """unix:///path, when the server was asked for a socket."""
        return f"unix://{self.socket_path}"


class NatsServer(Server):
    """A NATS server, by default with JetStream.

    jetstream:   False leaves JetStream off.
    max_payload: bytes of a message, headers included.
    user, password: credentials that every client needs.
    config:      further text for the configuration file.
    limits:      further settings inside the jetstream block, name to value.
    tls:         takes encrypted connections, and no others.
    """

    engine = "nats"

    def __init__(
        self,
        kind: str | None = None,
        *,
        jetstream: bool = True,
        max_payload: int | None = None,
        user: str | None = None,
        password: str | None = None,
        config: str = "",
        limits: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        port: int | None = None,
        tls: Tls | None = None,
    ) -> None:
        super().__init__(kind, port, tls)
        self.jetstream = jetstream
        self.store = self.folder / "store"
        self.user = user
        self.password = password
        self._max_payload = max_payload
        self._config = config
        self._limits = dict(limits or {})
        self._extra = list(arguments)

    def _arguments(self) -> list[str]:
        lines = [f"host: {self.host}", f"port: {self.port}", f"server_name: jq{self.port}"]
        if self._max_payload is not None:
            lines.append(f"max_payload: {self._max_payload}")
        if self.user is not None:
            lines.append(
                f"authorization {{ user: {json.dumps(self.user)},"
                f" password: {json.dumps(self.password or '')} }}"
            )
        if self.jetstream:
            limits = {"max_mem": 268435456, "max_file": 8589934592, **self._limits}
            inner = "".join(f", {name}: {value}" for name, value in limits.items())
            lines.append(f"jetstream {{ store_dir: {json.dumps(str(self.store))}{inner} }}")
        if self.tls is not None:
            own, clients = self.tls.own, "true" if self.tls.clients else "false"
            files = {"cert": f"{own}.pem", "key": f"{own}.key", "ca": "ca.pem"}
            inner = "".join(f"{k}_file: {json.dumps(self.tls.file(v))}, " for k, v in files.items())
            lines.append(f"tls {{ {inner} verify: {clients} }}")
        path = self.folder / "nats.conf"
        path.write_text("\n".join([*lines, self._config, ""]))
        return [str(self.program), "-c", str(path), *self._extra]

    def info(self) -> dict[str, Any]:
        """What the server says of itself to a new client."""
        word, _, rest = self._exchange(b"").partition(b" ")
        if word != b"INFO":
            raise OSError("no INFO line")
        found: dict[str, Any] = json.loads(rest)
        return found

    def _answers(self) -> bool:
        return "server_id" in self.info()

    @property
    def url(self) -> str:
        """nats://[user:password@]host:port"""
        return f"nats://{_credentials(self.user, self.password)}{self.host}:{self.port}"


def _credentials(user: str | None, password: str | None) -> str:
    if user is None and password is None:
        return ""
    return f"{quote(user or '', safe='')}:{quote(password or '', safe='')}@"


def start_server(engine: str, kind: str | None = None, **options: Any) -> Server:
    """Starts a server that can hold queues; Unavailable when there is none (or no JetStream)."""
    server: Server
    if engine == "redis":
        server = RedisServer(kind, **options)
    elif engine == "nats":
        server = NatsServer(kind, **options)
    else:
        raise ValueError(f"unknown engine: {engine}")
    try:
        server.start()
        if isinstance(server, NatsServer) and not server.info().get("jetstream"):
            raise Unavailable("the NATS server has JetStream off")
    except BaseException:
        server.close()
        raise
    return server


@contextlib.contextmanager
def _servers_for_command(wanted: Sequence[str]) -> Iterator[dict[str, str]]:
    with contextlib.ExitStack() as stack:
        environment: dict[str, str] = {}
        for choice in wanted:
            word, _, kind = choice.partition("=")
            engine = next((e for e, scheme in TLS_SCHEMES.items() if scheme == word), word)
            options: dict[str, Any] = {}
            if engine != word:
                kind = kind or TLS_KINDS[engine]
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                options["tls"] = Tls(Certificates(Path(folder)))
            try:
                server = start_server(engine, kind or None, **options)
            except Unavailable as reason:
                if strict():
                    raise
                print(f"servers: {reason}; running without it", file=sys.stderr)
                continue
            stack.callback(server.close)
            prefix = f"CWIST_TEST_{word.upper()}_"
            environment[prefix + "URL"] = server.tls_url if options else server.url
            environment[prefix + "HOST"] = server.host
            environment[prefix + "PORT"] = str(server.port)
            environment[prefix + "PID"] = str(server.pid)
        yield environment


def _run(wanted: Sequence[str], command: Sequence[str]) -> int:
    try:
        with _servers_for_command(wanted) as environment:
            return subprocess.run(
                command, env={**os.environ, **environment}, check=False
            ).returncode
    except (Unavailable, StartFailed) as reason:
        print(f"servers: {reason}", file=sys.stderr)
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command: list[str] = []
    if "--" in words:
        cut = words.index("--")
        words, command = words[:cut], words[cut + 1 :]
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="show the servers that are here")
    run = verbs.add_parser("run", help="run a command beside private servers")
    run.add_argument(
        "server",
        nargs="+",
        help="redis, redis=KIND, nats or nats=KIND; rediss or tls for one that encrypts",
    )
    chosen = parser.parse_args(words)
    if chosen.verb == "run":
        if not command:
            parser.error("give the command after --")
        return _run(chosen.server, command)
    for engine, kinds in KINDS.items():
        for kind in kinds:
            state = "here" if kind in available(engine) else "missing"
            print(f"{engine}={kind}: {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
