"""Private servers on free loopback ports, each with a password and a folder of its own."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import cwist_jq
from cwist_jq.testing import keeper, programs

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["NatsServer", "RedisServer", "StartFailed"]

_HOST = "127.0.0.1"
_START = 20.0  # seconds until a server has to answer
_TRY = 0.25
_STOP = 10.0
_PORTS = 5  # so many are tried: another program may take one just before the server does


class StartFailed(Exception):  # noqa: N818 (it says what happened)
    """The program is there, but the server did not come up; the text ends with its log."""


class _Server:
    """What both kinds share: a context manager, and the URL inside it.

    A small process of its own starts the server and ends it when this process is gone, however it
    ended.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._password = secrets.token_hex(16)
        self._port = 0
        self._folder: Path | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    # -- what an engine adds --

    def _config(self, folder: Path) -> str:
        raise NotImplementedError

    def _arguments(self, config: Path) -> list[str]:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The URL for connect(), with the password in it."""
        raise NotImplementedError

    # -- life --

    def start(self) -> None:
        """Starts the server and returns when it answers.

        Raises:
            StartFailed: It did not come up.
        """
        for left in reversed(range(_PORTS)):
            self._port = _free_port()
            self._folder = Path(tempfile.mkdtemp(prefix="cwist-jq-"))
            try:
                self._start_once(self._folder)
            except BaseException as error:
                self.stop()
                if left == 0 or not isinstance(error, StartFailed):
                    raise
            else:
                return

    def _start_once(self, folder: Path) -> None:
        config = folder / "config"
        config.write_text(self._config(folder), encoding="utf-8")
        log = folder / "log"
        command = [self._program, *self._arguments(config)]
        with log.open("wb") as output:
            self._keeper = subprocess.Popen(  # noqa: S603 (the program that was found)
                [sys.executable, "-I", "-S", keeper.__file__, str(folder), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=folder,
                start_new_session=True,  # Ctrl-C is for the tests; they end the server
            )
        end = time.monotonic() + _START
        while not self._answers():
            if self._keeper.poll() is not None or time.monotonic() > end:
                text = log.read_text(encoding="utf-8", errors="replace")
                raise StartFailed(f"{self._program} did not come up:\n{text[-2000:]}")

    def _answers(self) -> bool:
        try:
            cwist_jq.connect(self.url, operation_timeout=_TRY).close()
        except cwist_jq.ConnectionFailed:
            return False
        except cwist_jq.Error as error:  # another program has the port, or JetStream is off
            raise StartFailed(f"{error}") from None
        return True

    def stop(self) -> None:
        """Ends the server and removes what it kept. It may be called again."""
        running, self._keeper = self._keeper, None
        if running is not None:
            assert running.stdin is not None  # noqa: S101 (it was asked for)
            running.stdin.close()  # the keeper ends the server, and then itself
            try:
                running.wait(_STOP)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class RedisServer(_Server):
    """A Redis server of one's own.

    Example:
        with RedisServer() as server, cwist_jq.connect(server.url) as conn:
            conn.queue("emails").enqueue(b"hello")
    """

    def __init__(self) -> None:
        """Looks for the program.

        Raises:
            Missing: There is none.
        """
        super().__init__(programs.redis_server())

    def _config(self, folder: Path) -> str:
        lines = {
            "bind": _HOST,
            "port": self._port,
            "requirepass": self._password,
            "dir": f'"{folder.as_posix()}"',
            "save": '""',
            # The file costs nothing, and without it each connect would warn that jobs may be lost.
            "appendonly": "yes",
            "appendfsync": "no",
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())

    def _arguments(self, config: Path) -> list[str]:
        return [str(config)]

    @property
    def url(self) -> str:
        """redis://:password@host:port."""
        return f"redis://:{self._password}@{_HOST}:{self._port}"


class NatsServer(_Server):
    """A NATS server with JetStream of one's own. Use it as RedisServer."""

    def __init__(self) -> None:
        """Looks for the program.

        Raises:
            Missing: There is none.
        """
        super().__init__(programs.nats_server())

    def _config(self, folder: Path) -> str:
        store = (folder / "jetstream").as_posix()
        return (
            f'listen: "{_HOST}:{self._port}"\n'
            f'authorization {{ user: "tests", password: "{self._password}" }}\n'
            f'jetstream {{ store_dir: "{store}" }}\n'
        )

    def _arguments(self, config: Path) -> list[str]:
        return ["-c", str(config)]

    @property
    def url(self) -> str:
        """nats://tests:password@host:port."""
        return f"nats://tests:{self._password}@{_HOST}:{self._port}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
