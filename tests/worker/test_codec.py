"""Payloads as objects; without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pydantic
import pytest

from cwist_jq.worker import Reject
from cwist_jq.worker.codec import encode
from cwist_jq.worker.registry import Handler


class Struct(msgspec.Struct):
    to: str
    count: int = 1


class Model(pydantic.BaseModel):
    to: str
    count: int = 1


def with_struct(data: Struct) -> Any:
    return data


def with_model(data: Model) -> Any:
    return data


def _job(payload: bytes) -> Any:
    return SimpleNamespace(payload=payload)


def test_json() -> None:
    assert encode({"ä": [1, None, True]}) == '{"ä":[1,null,true]}'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), b"bytes"])
def test_what_has_no_json(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode(value)


@pytest.mark.parametrize(("kind", "handler"), [(Struct, with_struct), (Model, with_model)])
def test_models(kind: Any, handler: Any) -> None:
    model = kind(to="ä", count=3)
    written = encode(model)
    assert written == '{"to":"ä","count":3}'.encode()
    call = Handler(handler, ()).call
    assert call(_job(written)) == model
    assert call(_job(b'{"to": "x"}')) == kind(to="x")


@pytest.mark.parametrize("handler", [with_struct, with_model])
@pytest.mark.parametrize("payload", [b"", b"{", b"{}", b'{"to": 1}'])
def test_what_is_no_such_model_is_rejected(handler: Any, payload: bytes) -> None:
    with pytest.raises(Reject, match="the payload cannot be read"):
        Handler(handler, ()).call(_job(payload))
