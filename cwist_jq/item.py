"""What a job is stored with, beside its payload and type: delay, dedupe key, headers."""

from __future__ import annotations

from cwist_jq import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Union

    from typing_extensions import Buffer

    from cwist_jq.options import Duration

    Payload = Buffer
    Extras = tuple[int, Union[bytes, None], bytes, int]

__all__ = ["NOW", "PLAIN", "Item", "extras_of"]

#: The delay of a job that is ready at once. It is told from others by identity, which is quickest;
#: another zero only takes the longer way to the same end.
NOW: Duration = 0


class Item:
    """A payload with options of its own, for Queue.enqueue_many() and enqueue_all().

    Example:
        queue.enqueue_many([Item(b"one", "mail"), Item(b"two", delay=60, dedupe_key="two")])

    Attributes:
        payload: Bytes, as for Queue.enqueue().
        type: The type tag. None takes that of the call.
        delay: How long the job waits, as for Queue.enqueue().
        dedupe_key: The key of a unique job, or None.
        headers: A mapping of str to str, or None.
    """

    __slots__ = ("dedupe_key", "delay", "headers", "payload", "type")

    def __init__(
        self,
        payload: Payload,
        type: str | None = None,
        *,
        delay: Duration = NOW,
        dedupe_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Keeps all as they are; they are checked when they are sent."""
        self.payload = payload
        self.type = type
        self.delay = delay
        self.dedupe_key = dedupe_key
        self.headers = headers

    def __repr__(self) -> str:
        """The type and the kind of payload, never its content."""
        kind = self.payload.__class__.__name__
        return f"<cwist_jq.Item type={self.type!r} payload={kind}>"


#: The options of a job that has none.
PLAIN: Extras = (0, None, b"", 0)


def extras_of(delay: Duration, dedupe_key: str | None, headers: Mapping[str, str] | None) -> Extras:
    """Encodes options for C: delay in milliseconds, key, the text of the headers, their number."""
    return (
        options.delay(delay),
        None if dedupe_key is None else options.text("dedupe_key", dedupe_key),
        *((b"", 0) if headers is None else options.headers(headers)),
    )
