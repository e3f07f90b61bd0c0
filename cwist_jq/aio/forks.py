"""Tells a forked child from the process that made an object.

The child has no threads, and a lock may be held there for ever: what was made before the fork must
not even take one.
"""

from __future__ import annotations

import os

__all__ = ["forks"]

_forks = 0


def forks() -> int:
    """How many forks lie between the first process and this one; it is kept with an object."""
    return _forks


def _count() -> None:
    global _forks  # noqa: PLW0603 (one for the process)
    _forks += 1


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_count)
