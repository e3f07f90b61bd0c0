"""A job as it lies on the server."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Peeked"]


class Peeked(NamedTuple):
    """A ready job."""

    id: str
    type: str | None
    attempts: int  # deliveries that are spent
    key: str | None
    headers: dict[str, str]
    payload: bytes
