"""The builds, by CMake and by pip: what is left out, and libraries that are missing (K07)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import cwist_jq

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

#: What can be left out: an URL that needs it, what is said then, and the library that it needs.
PARTS = {
    "REDIS": ("redis://127.0.0.1:1", "no Redis backend", "libhiredis"),
    "NATS": ("nats://127.0.0.1:1", "no NATS backend", "libnats"),
    "TLS": ("rediss://127.0.0.1:1", "has no TLS; build it with OpenSSL", "libssl"),
}


def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, timeout=120, check=False
    )


def configure(build: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run("cmake", "-S", str(ROOT / "csrc"), "-B", str(build), *options, **env)


@pytest.mark.parametrize("absent", PARTS)
def test_an_absent_part_says_so(tmp_path: Path, absent: str) -> None:
    url, text, needed = PARTS[absent]
    done = configure(tmp_path, f"-DCWIST_JQ_WITH_{absent}=OFF", "-DCWIST_JQ_WERROR=ON")
    assert done.returncode == 0, done.stderr
    done = run("cmake", "--build", str(tmp_path), "-j2")
    assert done.returncode == 0, done.stderr
    source = tmp_path / "open.c"
    source.write_text(OPEN_ONE, encoding="utf-8")
    library = ["-I", str(ROOT / "include"), "-L", str(tmp_path), "-lcwist_jq"]
    done = run("cc", str(source), *library, "-o", str(tmp_path / "open"))
    assert done.returncode == 0, done.stderr
    said = run(str(tmp_path / "open"), url, LD_LIBRARY_PATH=str(tmp_path)).stdout
    assert said.startswith("CWIST_ERROR_UNSUPPORTED: ")
    assert text in said
    linked = run("readelf", "-d", str(tmp_path / "libcwist_jq.so")).stdout
    assert needed not in linked


MISSING = {
    "hiredis": (
        [],
        (
            "hiredis 0.14 or newer is missing: apt install libhiredis-dev, or apk add hiredis-dev, "
            "or dnf install hiredis-devel, or brew install hiredis, "
            "or configure with -DCWIST_JQ_WITH_REDIS=OFF"
        ),
    ),
    "libnats": (
        ["-DCWIST_JQ_WITH_REDIS=OFF"],
        (
            "libnats 3.4 or newer is missing: apt install libnats-dev, or brew install cnats, "
            "or configure with -DCWIST_JQ_WITH_NATS=OFF"
        ),
    ),
    "openssl": (
        ["-DCWIST_JQ_WITH_REDIS=OFF"],
        (
            "openssl 1.1.1 or newer is missing: apt install libssl-dev, or apk add openssl-dev, "
            "or dnf install openssl-devel, or brew install openssl, "
            "or configure with -DCWIST_JQ_WITH_TLS=OFF"
        ),
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
    no_pkg_config = ["-DPKG_CONFIG_EXECUTABLE=/nonexistent"]
    # CMake looks for programs nowhere, and is told where those are that it needs by itself.
    no_python = [
        "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF",
        "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
    ]
    old_python = tmp_path / "python3"
    old_python.write_text("#!/bin/sh\nexit 1\n")
    old_python.chmod(0o755)
    python = (
        "python3 3.9 or newer is missing: apt install python3, or apk add python3, "
        "or dnf install python3, or brew install python, "
        "or configure with -DCWIST_JQ_PYTHON=FILE"
    )
    for variable, program in (
        ("CMAKE_C_COMPILER", "cc"),
        ("CMAKE_MAKE_PROGRAM", "make"),
        ("PKG_CONFIG_EXECUTABLE", "pkg-config"),
    ):
        no_python.append(f"-D{variable}={shutil.which(program)}")
    for name, options, line in (
        (
            "pkg-config",
            no_pkg_config,
            (
                "pkg-config is missing: apt install pkg-config, or apk add pkgconf, "
                "or dnf install pkgconf-pkg-config, or brew install pkgconf"
            ),
        ),
        ("python", no_python, python),
        ("old-python", [f"-DCWIST_JQ_PYTHON={old_python}"], python),
    ):
        done = configure(tmp_path / name, *options)
        assert done.returncode != 0
        assert line in [said.strip() for said in done.stderr.splitlines()]


def test_the_shared_library_has_a_soname_of_its_abi() -> None:
    built = ROOT / "build" / "c" / "libcwist_jq.so"
    said = run("readelf", "-d", str(built)).stdout
    assert "Library soname: [libcwist_jq.so.0]" in said
    assert (built.parent / "libcwist_jq.a").exists()


@pytest.mark.parametrize("folder", [ROOT / "build/c", Path(cwist_jq.__file__).parent / "lib"])
def test_the_shared_library_calls_no_other_copy_of_itself(folder: Path) -> None:
    """A call by name would go to the copy that was loaded first, which knows no handle of this."""
    said = run("readelf", "--relocs", "--wide", str(folder / "libcwist_jq.so")).stdout
    assert " malloc" in said
    assert " cwist_" not in said
