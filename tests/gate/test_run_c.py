"""The runner of the C tests passes on failures, and in strict mode skips are failures.

Asked to, it runs again what a busy machine may have made fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers

_TEST = (
    'add_test(one "sh" "-c" "{script}")\nset_tests_properties(one PROPERTIES SKIP_RETURN_CODE 77)\n'
)


#: Fails the first time, and leaves the working folder's mark for the second.
_ONCE = "test -e mark || {{ touch mark; {first}; }}"


def _run(tmp_path: Path, script: str, strict: str, *more: str) -> int:
    text = _TEST.format(script=script) if script else ""
    (tmp_path / "CTestTestfile.cmake").write_text(text)
    environment = {**os.environ, servers.STRICT_VARIABLE: strict}
    return subprocess.run(
        [sys.executable, "-m", "tests.run_c", str(tmp_path), *more],
        cwd=servers.ROOT,
        env=environment,
        check=False,
    ).returncode


@pytest.mark.parametrize(
    ("script", "strict", "code"),
    [
        ('test -n \\"$CWIST_TEST_REDIS_URL$CWIST_TEST_NATS_PORT\\"', "1", 0),
        ("exit 3", "0", 1),
        ("exit 77", "1", 1),
        ("exit 77", "0", 0),
        ("", "0", 1),
    ],
    ids=["passes", "fails", "strict-skip", "skip", "no-tests"],
)
def test_exit_code(tmp_path: Path, script: str, strict: str, code: int) -> None:
    assert _run(tmp_path, script, strict) == code


@pytest.mark.parametrize(
    ("script", "more", "code"),
    [
        (_ONCE.format(first="false"), ["--again"], 0),
        (_ONCE.format(first="false"), [], 1),
        ("exit 3", ["--again"], 1),
        (_ONCE.format(first="exit 77"), ["--again"], 1),
        (_ONCE.format(first="kill -SEGV \\$\\$"), ["--again"], 1),
        (_ONCE.format(first="echo x: ended by signal 11; false"), ["--again"], 1),
        (_ONCE.format(first="echo x: ended by signal 14; false"), ["--again"], 0),
    ],
    ids=["once", "not-asked", "twice", "skip", "crash", "crash-inside", "hang-inside"],
)
def test_what_failed_is_run_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], script: str, more: list[str], code: int
) -> None:
    assert _run(tmp_path, script, "1", *more) == code
    output = capfd.readouterr().out
    assert ("PASSED ONLY ALONE: one" in output) == (code == 0)
    assert ("FAILED TWICE: one" in output) == (script == "exit 3")
