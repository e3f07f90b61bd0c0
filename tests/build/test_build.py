"""The builds, by CMake and by pip: what is left out, and libraries that are missing (K07)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

OPEN_ONE = """
#include <stdio.h>
#include <cwist/sys/job/durable_queue_ext.h>

int main(int argc, char **argv)
{
    cwist_job_conn_t *conn = NULL;
    cwist_error_t error = cwist_job_conn_open(&conn, argv[argc - 1], NULL);
    printf("%s: %s", cwist_job_error_name(cwist_job_error_code(&error)), cwist_job_last_error());
    return 0;
}
"""

ENGINES = {"REDIS": "redis://127.0.0.1:1", "NATS": "nats://127.0.0.1:1"}


def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, timeout=120, check=False
    )


def configure(build: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run("cmake", "-S", str(ROOT / "csrc"), "-B", str(build), *options, **env)


@pytest.mark.parametrize("absent", ["NATS", "REDIS"])
def test_an_absent_backend_says_so(tmp_path: Path, absent: str) -> None:
    done = configure(tmp_path, f"-DCWIST_JQ_WITH_{absent}=OFF", "-DCWIST_JQ_WERROR=ON")
    assert done.returncode == 0, done.stderr
    done = run("cmake", "--build", str(tmp_path), "-j2")
    assert done.returncode == 0, done.stderr
    source = tmp_path / "open.c"
    source.write_text(OPEN_ONE, encoding="utf-8")
    library = ["-I", str(ROOT / "include"), "-L", str(tmp_path), "-lcwist_jq"]
    done = run("cc", str(source), *library, "-o", str(tmp_path / "open"))
    assert done.returncode == 0, done.stderr
    said = run(str(tmp_path / "open"), ENGINES[absent], LD_LIBRARY_PATH=str(tmp_path)).stdout
    name = {"NATS": "NATS", "REDIS": "Redis"}[absent]
    assert said.startswith("CWIST_ERROR_UNSUPPORTED: ")
    assert f"no {name} backend" in said
    linked = run("ldd", str(tmp_path / "libcwist_jq.so")).stdout
    assert {"NATS": "libnats", "REDIS": "libhiredis"}[absent] not in linked


MISSING = {
    "hiredis": (
        [],
        "hiredis 0.14 or newer is missing: install libhiredis-dev (apt), hiredis-dev (apk), "
        "hiredis-devel (dnf), hiredis (brew), or configure with -DCWIST_JQ_WITH_REDIS=OFF",
    ),
    "libnats": (
        ["-DCWIST_JQ_WITH_REDIS=OFF"],
        "libnats 3.4 or newer is missing: install libnats-dev (apt), cnats (brew), "
        "or configure with -DCWIST_JQ_WITH_NATS=OFF",
    ),
    "openssl": (
        ["-DCWIST_JQ_WITH_NATS=OFF"],
        "openssl 1.1.1 or newer is missing: install libssl-dev (apt), openssl-dev (apk), "
        "openssl-devel (dnf), openssl (brew), or configure with -DCWIST_JQ_WITH_TLS=OFF",
    ),
}


@pytest.mark.parametrize("module", MISSING)
def test_a_missing_library_is_named_with_its_packages(tmp_path: Path, module: str) -> None:
    """pkg-config sees the module files of the others only."""
    options, line = MISSING[module]
    seen = tmp_path / "modules"
    seen.mkdir()
    for other in {"hiredis", "libnats", "openssl", "libssl", "libcrypto"} - {module}:
        folder = run("pkg-config", "--variable=pcfiledir", other).stdout.strip()
        shutil.copy2(Path(folder) / f"{other}.pc", seen)
    nothing_else = {"PKG_CONFIG_LIBDIR": str(seen), "PKG_CONFIG_PATH": ""}
    done = configure(tmp_path / "build", *options, **nothing_else)
    assert done.returncode != 0
    assert line in [said.strip() for said in done.stderr.splitlines()]


def test_missing_programs_are_named_with_their_packages(tmp_path: Path) -> None:
    for name, option, line in (
        (
            "pkg-config",
            "-DPKG_CONFIG_EXECUTABLE=/nonexistent",
            "pkg-config is missing: install pkg-config (apt), pkgconf (apk), "
            "pkgconf-pkg-config (dnf), pkgconf (brew)",
        ),
        (
            "python",
            "-DCWIST_JQ_PYTHON=CWIST_JQ_PYTHON-NOTFOUND",
            "",
        ),
    ):
        done = configure(tmp_path / name, option)
        if line:
            assert done.returncode != 0
            assert line in [said.strip() for said in done.stderr.splitlines()]


def test_the_shared_library_has_a_soname_of_its_abi() -> None:
    built = ROOT / "build" / "c" / "libcwist_jq.so"
    said = run("readelf", "-d", str(built)).stdout
    assert "Library soname: [libcwist_jq.so.0]" in said
    assert (built.parent / "libcwist_jq.a").exists()
