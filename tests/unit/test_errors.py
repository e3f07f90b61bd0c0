"""The exceptions: one root, the builtin that fits, a code, a text."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq import _lib, errors

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.Error) and kind.__module__ == errors.__name__
]
INCLUDE = Path(__file__).resolve().parents[2] / "include" / "cwist" / "sys"


@pytest.mark.parametrize("kind", KINDS)
def test_every_exception_is_public_and_under_the_root(kind: type[errors.Error]) -> None:
    assert getattr(cwist_jq, kind.__name__) is kind
    assert kind.__name__ in cwist_jq.__all__
    assert kind.__name__ in errors.__all__
    assert kind.__doc__


@pytest.mark.parametrize("kind", KINDS)
def test_text_code_and_copies(kind: type[errors.Error]) -> None:
    error = kind("what failed")
    assert str(error) == error.text == "what failed"
    assert error.code < 0
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(again), again.text, again.code) == (kind, error.text, error.code)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ConnectionFailed, ConnectionError),
        (errors.OutOfMemory, MemoryError),
        (errors.InvalidParam, ValueError),
        (errors.InvalidType, TypeError),
        (errors.InvalidType, ValueError),
        (errors.Timeout, TimeoutError),
        (errors.TooLarge, ValueError),
        (errors.Denied, PermissionError),
        (errors.NotFound, LookupError),
    ],
)
def test_natural_builtin(kind: type[errors.Error], builtin: type[Exception]) -> None:
    assert issubclass(kind, builtin)


def test_every_code_of_the_headers_has_its_own_exception() -> None:
    text = "".join(
        (INCLUDE / name).read_text("utf-8")
        for name in ("err/cwist_err.h", "job/durable_queue_ext.h")
    )
    codes = {int(code) for code in re.findall(r"\bCWIST_(?:ERROR_\w+|FAILURE) = (-\d+)", text)}
    own = [kind for kind in KINDS if "code" in vars(kind)]
    assert {kind.code for kind in own} == codes
    assert len(own) == len(codes)
    assert {code: kind.code for code, kind in _lib._EXCEPTIONS.items()} == {
        code: code for code in codes - {errors.Error.code}
    }


def test_a_code_without_an_exception_is_the_root_with_that_code() -> None:
    with pytest.raises(errors.Error) as caught:
        _lib._tell(-99)
    assert type(caught.value) is errors.Error
    assert caught.value.code == -99
    assert errors.Error.code == -1


def test_an_exception_without_arguments_has_an_empty_text() -> None:
    assert errors.Error().text == ""
