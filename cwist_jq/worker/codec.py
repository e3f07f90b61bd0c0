"""Payloads as objects: JSON, and models of msgspec and pydantic. Never pickle.

Neither package is imported here: who has a model to pass has imported its package before.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from cwist_jq.options import Duration
    from cwist_jq.queue import Queue

__all__ = ["decode", "decoder_of", "encode", "enqueue_json"]

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _model(package: str, name: str) -> Any:
    """The base class of the models of a package; an empty tuple when it is not imported."""
    module = sys.modules.get(package)
    return getattr(module, name, ()) if module is not None else ()


def encode(value: object) -> bytes:
    """Writes an object as UTF-8 JSON.

    Args:
        value: What the json module takes (no NaN and no infinity), a msgspec Struct or a pydantic
            model.

    Raises:
        TypeError, ValueError: It has no JSON.
    """
    if isinstance(value, _model("msgspec", "Struct")):
        written: bytes = sys.modules["msgspec"].json.encode(value)
        return written
    if isinstance(value, _model("pydantic", "BaseModel")):
        return str(value.model_dump_json()).encode()
    return _encode(value).encode()


def decode(payload: bytes) -> Any:
    """Reads JSON; an empty payload is None."""
    return json.loads(payload) if payload else None


def decoder_of(annotation: object) -> Callable[[bytes], Any]:
    """What turns a payload into what a parameter with this annotation wants.

    bytes take the payload as it is, models of msgspec and pydantic are read by their packages, and
    anything else is what its JSON says.
    """
    if annotation is bytes:
        return bytes
    if isinstance(annotation, type):
        if issubclass(annotation, _model("msgspec", "Struct")):
            decoder: Callable[[bytes], Any] = sys.modules["msgspec"].json.Decoder(annotation).decode
            return decoder
        if issubclass(annotation, _model("pydantic", "BaseModel")):
            validate: Callable[[bytes], Any] = annotation.model_validate_json  # type: ignore[attr-defined]  # a model
            return validate
    return decode


def enqueue_json(  # noqa: PLR0913 (as Queue.enqueue())
    queue: Queue,
    value: object,
    *,
    type: str | None = None,
    delay: Duration = 0,
    dedupe_key: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> str:
    """Stores a job whose payload is an object, for a handler of a Worker.

    Example:
        enqueue_json(queue, {"to": "a@b.co"}, type="welcome")

    Args:
        queue: Where to.
        value: As for encode(): what the json module takes, a msgspec Struct or a pydantic model.
        type: Which handler is to have it.
        delay: As for Queue.enqueue().
        dedupe_key: As for Queue.enqueue().
        headers: As for Queue.enqueue().

    Returns:
        The id of the job.

    Raises:
        TypeError, ValueError: The value has no JSON.
        Error: As for Queue.enqueue().
    """
    return queue.enqueue(
        encode(value), type=type, delay=delay, dedupe_key=dedupe_key, headers=headers
    )
