"""The gate fails when a backend is missing, and lets a person run what is there.

Each test runs a second pytest whose servers folder holds only what the test put there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers

# Drops the one line of the configuration that switches JetStream on.
_WITHOUT_JETSTREAM = """#!/bin/sh
sed -i '/^jetstream/d' "$2"
exec {program} "$@"
"""


def _folder(tmp_path: Path, *present: str) -> Path:
    """A servers folder with these of: redis, nats, nats-without-jetstream."""
    folder = tmp_path / "servers"
    folder.mkdir()
    for engine, kinds in servers.KINDS.items():
        for kind in kinds:
            place = folder / f"{engine}-{kind}"
            place.mkdir()
            target = place / f"{engine}-server"
            if kind != servers.pinned(engine):
                (place / "absent").touch()
            elif engine in present:
                target.symlink_to(servers.program(engine, kind).resolve())
                if engine == "redis":
                    # The distribution's program looks at the name that it was called by.
                    target.unlink()
                    shutil.copy2(servers.program(engine, kind), target)
            elif f"{engine}-without-jetstream" in present:
                program = servers.program(engine, kind)
                target.write_text(_WITHOUT_JETSTREAM.format(program=program))
                target.chmod(0o755)
    return folder


def _run(folder: Path, strict: str | None, probe: str = "") -> tuple[int, dict[str, int], str]:
    """Runs the probe; returns the exit code, the counts of the last line, all output."""
    environment = {k: v for k, v in os.environ.items() if k != servers.STRICT_VARIABLE}
    environment[servers.FOLDER_VARIABLE] = str(folder)
    environment["PROBE"] = probe
    if strict is not None:
        environment[servers.STRICT_VARIABLE] = strict
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs"]
    if probe == "":
        command += ["-k", "test_backend"]
    done = subprocess.run(
        [*command, "tests/gate/probe.py"],
        cwd=servers.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", last)}
    counts.pop("deselected", None)
    return done.returncode, counts, done.stdout


@pytest.mark.parametrize(
    ("present", "failing"),
    [
        (["nats"], 1),
        (["redis"], 1),
        (["redis", "nats-without-jetstream"], 1),
        ([], 2),
    ],
    ids=["no-redis", "no-nats", "jetstream-off", "neither"],
)
@pytest.mark.parametrize("strict", ["1", "yes"])
def test_strict_mode_fails(tmp_path: Path, strict: str, present: list[str], failing: int) -> None:
    code, counts, output = _run(_folder(tmp_path, *present), strict)
    assert code == 1, output
    assert counts.pop("failed", 0) + counts.pop("errors", 0) + counts.pop("error", 0) == failing, (
        output
    )
    assert counts.pop("passed", 0) == 2 - failing
    assert not counts, output
    assert servers.STRICT_VARIABLE in output


@pytest.mark.parametrize("strict", [None, "", "0"])
def test_a_person_may_run_what_is_there(tmp_path: Path, strict: str | None) -> None:
    code, counts, output = _run(_folder(tmp_path, "redis"), strict)
    assert (code, counts) == (0, {"passed": 1, "skipped": 1}), output


def test_jetstream_off_is_skipped_for_a_person(tmp_path: Path) -> None:
    code, counts, output = _run(_folder(tmp_path, "redis", "nats-without-jetstream"), None)
    assert (code, counts) == (0, {"passed": 1, "skipped": 1}), output
    assert "JetStream" in output


def test_strict_mode_passes_with_both(tmp_path: Path) -> None:
    code, counts, output = _run(_folder(tmp_path, "redis", "nats"), "1")
    assert (code, counts) == (0, {"passed": 2}), output


def test_strict_mode_fails_for_any_skip(tmp_path: Path) -> None:
    code, counts, output = _run(_folder(tmp_path, "redis", "nats"), "1", probe="skip")
    assert (code, counts) == (1, {"passed": 3, "failed": 1}), output
    assert "some other reason" in output


def test_strict_mode_lets_expected_failures_be(tmp_path: Path) -> None:
    _, counts, output = _run(_folder(tmp_path, "redis", "nats"), None, probe="xfail")
    assert counts == {"passed": 2, "skipped": 1, "xfailed": 1}, output


def test_missing_folder_of_a_distribution_server_is_a_gap(tmp_path: Path) -> None:
    """Only what set-up marked as absent may be left out."""
    folder = _folder(tmp_path, "redis", "nats")
    shutil.rmtree(folder / "nats-distribution")
    environment = {**os.environ, servers.FOLDER_VARIABLE: str(folder)}
    code = "from tests import servers; print(servers.known_absent('nats', 'distribution'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=servers.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("strict", "expected"), [("1", 1), ("0", 0)])
def test_command_line_runs_without_a_missing_server_only_for_a_person(
    tmp_path: Path, strict: str, expected: int
) -> None:
    """The C tests are run through the command line; it has the same gate."""
    environment = {
        **os.environ,
        servers.FOLDER_VARIABLE: str(_folder(tmp_path, "redis")),
        servers.STRICT_VARIABLE: strict,
    }
    command = 'test -n "$CWIST_TEST_REDIS_URL" && test -z "$CWIST_TEST_NATS_URL"'
    done = subprocess.run(
        [sys.executable, "-m", "tests.servers", "run", "redis", "nats", "--", "sh", "-c", command],
        cwd=servers.ROOT,
        env=environment,
        check=False,
    )
    assert done.returncode == expected
