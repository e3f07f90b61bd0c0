"""What an enqueue returns: ids, and those that say that the job was there already."""

from __future__ import annotations

__all__ = ["DuplicateId"]


class DuplicateId(str):
    """The id of the first job with that dedupe key, which still lives: nothing was stored.

    It is a str like any other id.

    Example:
        if isinstance(queue.enqueue(b"x", dedupe_key="user-7"), cwist_jq.DuplicateId):
            print("already on its way")
    """

    __slots__ = ()
