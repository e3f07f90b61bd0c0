"""The check of the ABI sees what would break programs that are in use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests import servers
from tests.loading import load

_LIBRARY = servers.ROOT / "build" / "c" / "libcwist_jq.so"


@pytest.fixture
def check() -> ModuleType:
    """The program, as a module."""
    return load(servers.ROOT / "csrc" / "tools" / "check_abi.py")


@pytest.fixture
def publish(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str, str, str], None]:
    """Pretends that another ABI was published: publish(file, pattern, instead)."""

    def change(which: str, pattern: str, instead: str) -> None:
        text = getattr(check, which).read_text("utf-8")
        changed, count = re.subn(pattern, instead, text, count=1)
        assert count == 1
        path = tmp_path / which
        path.write_text(changed, encoding="utf-8")
        monkeypatch.setattr(check, which, path)

    return change


def test_the_same(check: ModuleType) -> None:
    assert check.main([str(_LIBRARY)]) == 0


@pytest.mark.parametrize(
    ("which", "pattern", "instead", "said"),
    [
        (
            "BASELINE",
            "(?s)(name='cwist_job_conn_opts' size-in-bits=)'320'",
            r"\1'256'",
            "cwist_job_conn_opts",
        ),
        ("BASELINE", "layout-offset-in-bits='128'", "layout-offset-in-bits='96'", "offset"),
        (
            "BASELINE",
            "(?s)<elf-symbol name='cwist_job_id'(.*?)/>",
            r"\g<0><elf-symbol name='cwist_job_old'\1/>",
            "cwist_job_old",
        ),
        ("BASELINE", "libcwist_jq.so.0", "libcwist_jq.so.1", "SONAME"),
        ("CONSTANTS", "CONFLICT -28", "CONFLICT -27", "CWIST_ERROR_CONFLICT was -27, and is -28"),
        ("CONSTANTS", "JOB_ID_SIZE", "JOB_ID_LENGTH", "CWIST_JOB_ID_LENGTH was 64, and is gone"),
    ],
)
def test_what_breaks_programs(
    check: ModuleType,
    publish: Callable[[str, str, str], None],
    capsys: pytest.CaptureFixture[str],
    which: str,
    pattern: str,
    instead: str,
    said: str,
) -> None:
    publish(which, pattern, instead)
    assert check.main([str(_LIBRARY)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("which", "pattern"),
    [
        ("BASELINE", r"(?s)<elf-symbol name='cwist_job_claim_end'.*?/>"),
        ("CONSTANTS", "CWIST_JOB_ID_SIZE 64\n"),
    ],
)
def test_what_is_added_breaks_nothing(
    check: ModuleType, publish: Callable[[str, str, str], None], which: str, pattern: str
) -> None:
    publish(which, pattern, "")
    assert check.main([str(_LIBRARY)]) == 0


def test_a_library_without_debug_information_is_refused(check: ModuleType, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "--strip-debug", "-o", stripped, _LIBRARY], check=True)
    with pytest.raises(SystemExit, match="no debug information"):
        check.main([str(stripped)])
