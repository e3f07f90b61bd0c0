"""The package as it is imported: version, names, weight, and the stub of the native module."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq import _lib, _native

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_the_headers() -> None:
    text = (ROOT / "include" / "cwist" / "version.h").read_text("utf-8")
    numbers = re.findall(r"define CWIST_JQ_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text)
    assert cwist_jq.__version__ == _lib.version() == ".".join(numbers)


def test_all_names_exist_and_are_documented() -> None:
    assert sorted(set(cwist_jq.__all__)) == sorted(cwist_jq.__all__)
    for name in cwist_jq.__all__:
        value = getattr(cwist_jq, name)
        if name != "__version__":
            assert value.__doc__, name
        if not inspect.isclass(value):
            continue
        for member, method in inspect.getmembers(value, inspect.isfunction):
            if not member.startswith("_") and method.__module__.startswith("cwist_jq"):
                assert method.__doc__, f"{name}.{member}"


def test_signatures() -> None:
    def shown(function: object) -> str:
        return str(inspect.signature(function)).replace("'", "")  # type: ignore[arg-type]

    assert shown(cwist_jq.connect) == (
        "(url: str | None = None, *, connect_timeout: Duration = 2.0, "
        "operation_timeout: Duration = 5.0) -> Connection"
    )
    assert shown(cwist_jq.Connection.queue) == (
        "(self, name: str, *, consumer: str | None = None, visibility_timeout: Duration = 30.0, "
        "max_retries: int = 5, retry_delay: Duration = 0.0, "
        "retry_backoff: Backoff = fixed, retry_delay_max: Duration = 3600.0, "
        "retry_jitter: float = 0.0, max_length: int | None = None, auto_renew: bool = False) "
        "-> Queue"
    )
    assert shown(cwist_jq.Queue.enqueue) == (
        "(self, payload: Payload, *, type: str | None = None, delay: Duration = 0, "
        "dedupe_key: str | None = None, headers: Mapping[str, str] | None = None) -> str"
    )
    assert shown(cwist_jq.Queue.claim) == "(self, timeout: Duration | None = None) -> Job | None"
    for many in (cwist_jq.Queue.enqueue_many, cwist_jq.Queue.enqueue_all):
        assert shown(many) == (
            "(self, payloads: Iterable[Payload | Item], *, type: str | None = None) -> list[str]"
        )
    assert shown(cwist_jq.Queue.claim_many) == (
        "(self, n: int, timeout: Duration | None = None) -> list[Job]"
    )
    assert shown(cwist_jq.Queue.ack_and_claim) == (
        "(self, jobs: Iterable[Job], n: int, timeout: Duration | None = None) -> list[Job]"
    )
    assert shown(cwist_jq.Job.nack) == (
        "(self, reason: str | None = None, *, delay: Duration | None = None, dead: bool = False) "
        "-> None"
    )
    assert shown(cwist_jq.Job.release) == "(self, delay: Duration = 0) -> None"
    assert shown(cwist_jq.DeadLetters.page) == (
        "(self, most: int = 100, *, oldest_first: bool = False, type: str | None = None, "
        "after: str | None = None) -> DeadPage"
    )
    assert shown(cwist_jq.DeadLetters.purge_all) == (
        "(self, type: str | None = None, older_than: Duration = 0) -> int"
    )


@pytest.mark.parametrize(
    "kind",
    [cwist_jq.Connection, cwist_jq.Queue, cwist_jq.Job, cwist_jq.Item, cwist_jq.DeadLetters],
)
def test_objects_take_no_other_attributes(kind: type) -> None:
    assert not hasattr(object.__new__(kind), "__dict__")


def test_late_names_are_there_when_they_are_asked_for() -> None:
    for name in ("DeadLetter", "DeadLetters", "DeadPage", "Stats"):
        assert getattr(cwist_jq, name).__name__ == name
        assert name in cwist_jq.__all__
    with pytest.raises(AttributeError, match="nothing"):
        cwist_jq.nothing  # noqa: B018


def test_the_import_is_light() -> None:
    program = "import sys; old = set(sys.modules); import cwist_jq; print(*set(sys.modules) - old)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"],
        check=True,
        capture_output=True,
        text=True,
    )
    heavy = "asyncio dataclasses datetime enum importlib.metadata inspect json logging re typing"
    assert set(done.stdout.split()).isdisjoint({*heavy.split(), "threading", "urllib"})


def test_only_lib_touches_the_native_module() -> None:
    for path in (ROOT / "cwist_jq").rglob("*.py"):
        if path.name in {"_lib.py", "_lib_upkeep.py", "_ffi_build.py"}:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        for node in _run_time_imports(tree):
            names = [alias.name for alias in node.names]
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            assert "cffi" not in names, path
            assert "_native" not in " ".join([module or "", *names]), path


def _run_time_imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    """All imports but those for the type checker."""
    found: list[ast.Import | ast.ImportFrom] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        found += _run_time_imports(node)
    return found


def test_the_stub_names_what_the_module_has() -> None:
    stub = ast.parse((ROOT / "cwist_jq" / "_native.pyi").read_text("utf-8"))
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    for name, value in (("_Lib", _native.lib), ("_Ffi", _native.ffi)):
        for node in classes[name].body:
            if isinstance(node, ast.FunctionDef):
                assert callable(getattr(value, node.name)), node.name
            else:
                assert isinstance(node, ast.AnnAssign)
                assert isinstance(node.target, ast.Name)
                assert hasattr(value, node.target.id), node.target.id


def test_the_module_has_only_one_public_symbol() -> None:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", _native.__file__],
        check=True,
        capture_output=True,
        text=True,
    )
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["PyInit__native"]


def test_a_url_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        if value is None:
            monkeypatch.delenv("CWIST_JQ_URL", raising=False)
        else:
            monkeypatch.setenv("CWIST_JQ_URL", value)
        with pytest.raises(cwist_jq.InvalidParam, match="CWIST_JQ_URL"):
            cwist_jq.connect()


def test_the_url_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWIST_JQ_URL", "gopher://:secret@nowhere")
    with pytest.raises(cwist_jq.InvalidParam) as caught:
        cwist_jq.connect()
    assert "scheme" in caught.value.text
    assert "secret" not in caught.value.text


@pytest.mark.parametrize("field", ["connect_timeout", "operation_timeout"])
@pytest.mark.parametrize("value", [0, -1, 86_400.1, float("nan"), True, "1", None])
def test_timeouts_of_a_connection(field: str, value: object) -> None:
    with pytest.raises(cwist_jq.InvalidParam, match=rf"{field} .*0\.001 to 86400 seconds"):
        cwist_jq.connect("redis://127.0.0.1:1", **{field: value})  # type: ignore[arg-type]
