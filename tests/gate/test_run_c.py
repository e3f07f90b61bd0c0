"""The runner of the C tests passes on failures, and in strict mode skips are failures."""

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


def _run(tmp_path: Path, script: str, strict: str) -> int:
    text = _TEST.format(script=script) if script else ""
    (tmp_path / "CTestTestfile.cmake").write_text(text)
    environment = {**os.environ, servers.STRICT_VARIABLE: strict}
    return subprocess.run(
        [sys.executable, "-m", "tests.run_c", str(tmp_path)],
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
