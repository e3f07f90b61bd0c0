"""What all commands share: the options --url, --timeout and --json, and the connection."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

import cwist_jq
from cwist_jq.cli.output import Output
from cwist_jq.connection import URL_VARIABLE

__all__ = ["Session", "command_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Session:
    """The choices of one run of the program."""

    def __init__(self) -> None:
        """Takes the defaults; the options set what they name."""
        self._url: str | None = None
        self.timeout = 5.0
        self.out = Output()

    @property
    def url(self) -> str:
        """The server's URL. It may hold a password: never print it."""
        url = self._url or os.environ.get(URL_VARIABLE)
        if not url:
            raise click.UsageError(f"no server is named: pass --url, or set {URL_VARIABLE}")
        if url.startswith("memory:"):
            raise click.UsageError("memory:// is inside one process; name a server")
        return url

    @url.setter
    def url(self, url: str) -> None:
        self._url = url

    @property
    def has_url(self) -> bool:
        """Whether a server was named."""
        return bool(self._url or os.environ.get(URL_VARIABLE))

    @contextlib.contextmanager
    def connect(self) -> Iterator[cwist_jq.Connection]:
        """A connection, closed at the end."""
        with cwist_jq.connect(
            self.url,
            connect_timeout=min(self.timeout, 2.0),
            operation_timeout=self.timeout,
        ) as connection:
            yield connection

    @contextlib.contextmanager
    def queue(self, name: str, **options: Any) -> Iterator[cwist_jq.Queue]:
        """A queue on a connection of its own."""
        with self.connect() as connection:
            yield connection.queue(name, **options)


def _session(context: click.Context) -> Session:
    return context.ensure_object(Session)


def _take_url(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        _session(context).url = value


def _take_timeout(context: click.Context, _: click.Parameter, value: float | None) -> None:
    if value is not None:
        _session(context).timeout = value


def _take_json(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click's)
    if value:
        _session(context).out.as_json = True


_OPTIONS = (
    click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_take_json,
        is_eager=True,
        help="Write JSON, one object a line.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0.001, 86400),
        metavar="SECONDS",
        expose_value=False,
        callback=_take_timeout,
        help="How long one call to the server may take (5).",
    ),
    click.option(
        "--url",
        metavar="URL",
        expose_value=False,
        callback=_take_url,
        help=f"The server: redis://host, nats://host and so on. Default: {URL_VARIABLE}.",
    ),
)


def command_options(function: _Command) -> _Command:
    """Gives a command the shared options, and the session as its first argument."""

    @click.pass_context
    @functools.wraps(function)
    def with_session(context: click.Context, *arguments: Any, **named: Any) -> Any:
        return context.invoke(function, _session(context), *arguments, **named)

    for option in _OPTIONS:
        with_session = option(with_session)
    return with_session  # type: ignore[return-value]
