"""asyncio has every name of the synchronous interface, with the same arguments and defaults."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import cwist_jq
from cwist_jq import aio

#: What makes no sense there, and why.
LEFT_OUT = {
    "__version__": "that of the package",
    "get_include": "for those who build C programs",
    "get_library_dirs": "for those who build C programs",
}
#: What is there in addition: what connect() and Connection.queue() return.
ADDED = {"Opening"}
#: These answer at once: nothing is to be awaited.
AT_ONCE = {"interrupt"}
TWINS = ["Connection", "DeadLetters", "Job", "Queue"]


def _public(kind: type) -> dict[str, object]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


def _fields(kind: type) -> set[str]:
    """The public names of a class, those that are no members until an object has them too."""
    return set(_public(kind)) | {name for name in kind.__annotations__ if name[0] != "_"}


def test_the_module_has_all_names() -> None:
    assert set(aio.__all__) == set(cwist_jq.__all__) - set(LEFT_OUT) | ADDED
    for name in aio.__all__:
        assert getattr(aio, name).__doc__, name


def test_what_has_no_twin_is_the_same() -> None:
    for name in set(aio.__all__) - ADDED - set(TWINS) - {"connect"}:
        assert getattr(aio, name) is getattr(cwist_jq, name)


@pytest.mark.parametrize("name", TWINS)
def test_the_classes_have_all_names(name: str) -> None:
    assert _fields(getattr(aio, name)) == _fields(getattr(cwist_jq, name))


@pytest.mark.parametrize("name", [*TWINS, "Opening"])
def test_the_classes_take_no_other_attributes(name: str) -> None:
    assert not hasattr(object.__new__(getattr(aio, name)), "__dict__")


def _shown(call: object) -> str:
    """The arguments of a call. Many may come from an asynchronous iterable as well."""
    text = str(inspect.signature(call).replace(return_annotation=""))  # type: ignore[arg-type]
    return text.replace("'", "").replace("Payloads", "Iterable[Payload | Item]")


@pytest.mark.parametrize("name", TWINS)
def test_the_calls_take_the_same_arguments(name: str) -> None:
    twin = _public(getattr(aio, name))
    for member, value in _public(getattr(cwist_jq, name)).items():
        if inspect.isfunction(value):
            assert _shown(twin[member]) == _shown(value), f"{name}.{member}"
            opens = (name, member) == ("Connection", "queue")
            awaited = inspect.iscoroutinefunction(twin[member])
            assert awaited == (member not in AT_ONCE and not opens), f"{name}.{member}"
            assert getattr(twin[member], "__doc__", None), f"{name}.{member}"
    assert _shown(aio.connect) == _shown(cwist_jq.connect)


@pytest.mark.parametrize(
    ("name", "plain", "asynchronous"),
    [
        ("Connection", ["__enter__", "__exit__"], ["__aenter__", "__aexit__"]),
        ("Queue", ["__enter__", "__exit__", "__iter__"], ["__aenter__", "__aexit__", "__aiter__"]),
        ("Job", ["__enter__", "__exit__", "__reduce__"], ["__aenter__", "__aexit__", "__reduce__"]),
        ("DeadLetters", ["__iter__"], ["__aiter__"]),
    ],
)
def test_the_statements_work(name: str, plain: list[str], asynchronous: list[str]) -> None:
    assert all(hasattr(getattr(cwist_jq, name), member) for member in plain)
    assert all(hasattr(getattr(aio, name), member) for member in asynchronous)


def test_the_package_does_not_import_asyncio() -> None:
    program = "import sys, cwist_jq; print('asyncio' in sys.modules, 'cwist_jq.aio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.split() == [b"False", b"False"]
