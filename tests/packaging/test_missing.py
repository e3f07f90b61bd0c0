"""A build from source with something missing ends in one line that says what to install (K08)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Runs setup.py as another Python would: {python} changes what it sees of itself.
OTHER_PYTHON = """
import collections, runpy, sys, sysconfig
import setuptools
Version = collections.namedtuple("Version", "major minor micro releaselevel serial")
{python}
sys.path.insert(0, ".")
sys.argv[0] = "setup.py"
runpy.run_path("setup.py", run_name="__main__")
"""
FREE_THREADED = "sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1"
NO_CFFI = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "cffi" else find_spec(name)
"""
NO_HEADERS = """
get_path = sysconfig.get_path
sysconfig.get_path = lambda name: "/nonexistent" if "include" in name else get_path(name)
"""


def build(
    folder: Path, *, python: str = "", path: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Builds the package from the tree into a folder; the environment says what is missing."""
    env = os.environ | environment | {"PATH": os.environ["PATH"] if path is None else path}
    program = OTHER_PYTHON.format(python=python)
    command = [sys.executable, "-W", "ignore", "-c", program, "-q", "build_ext"]
    return subprocess.run(
        [*command, f"--build-temp={folder}/temp", f"--build-lib={folder}/lib"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def modules_but(folder: Path, *absent: str) -> dict[str, str]:
    """Lets pkg-config see the libraries but for some."""
    folder.mkdir()
    for name in {"hiredis", "libnats", "openssl", "libssl", "libcrypto"} - set(absent):
        command = ["pkg-config", "--variable=pcfiledir", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        shutil.copy2(Path(done.stdout.strip(), f"{name}.pc"), folder)
    return {"PKG_CONFIG_LIBDIR": str(folder), "PKG_CONFIG_PATH": ""}


def programs(folder: Path, *names: str) -> str:
    """A PATH with these programs alone."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return str(folder)


def ends_with(done: subprocess.CompletedProcess[str], line: str) -> None:
    """The last line is the reason, and nothing was compiled before it."""
    said = done.stderr.strip().splitlines()
    assert done.returncode != 0
    assert said[-1] == f"cwist_jq: {line}", done.stderr
    assert len(said) == 1, done.stderr


LIBRARIES = {
    "hiredis": (
        "hiredis 0.14 or newer is missing: apt install libhiredis-dev, or apk add hiredis-dev, "
        "or dnf install hiredis-devel, or brew install hiredis, or set CWIST_JQ_WITHOUT=redis"
    ),
    "libnats": (
        "libnats 3.4 or newer is missing: apt install libnats-dev, or brew install cnats, "
        "or set CWIST_JQ_WITHOUT=nats"
    ),
    "openssl": (
        "openssl 1.1.1 or newer is missing: apt install libssl-dev, or apk add openssl-dev, "
        "or dnf install openssl-devel, or brew install openssl, or set CWIST_JQ_WITHOUT=tls"
    ),
}


@pytest.mark.parametrize("module", LIBRARIES)
def test_a_library(tmp_path: Path, module: str) -> None:
    done = build(tmp_path, **modules_but(tmp_path / "modules", module))
    ends_with(done, LIBRARIES[module])


def test_a_library_that_is_too_old(tmp_path: Path) -> None:
    folder = tmp_path / "modules"
    environment = modules_but(folder, "hiredis")
    (folder / "hiredis.pc").write_text("Name: hiredis\nDescription: old\nVersion: 0.13.3\n")
    done = build(tmp_path, **environment)
    assert "hiredis 0.13.3 is too old, 0.14 or newer is needed: apt install" in done.stderr


def test_pkg_config(tmp_path: Path) -> None:
    path = programs(tmp_path / "bin", "gcc", "cc", "as", "ld")
    ends_with(
        build(tmp_path, path=path, CC="gcc"),
        "pkg-config is missing: apt install pkg-config, or apk add pkgconf, "
        "or dnf install pkgconf-pkg-config, or brew install pkgconf",
    )


def test_the_compiler(tmp_path: Path) -> None:
    ends_with(
        build(tmp_path, path=programs(tmp_path / "bin", "pkg-config"), CC="gcc"),
        "the C compiler gcc is missing: apt install gcc libc6-dev, or apk add gcc musl-dev, "
        "or dnf install gcc glibc-devel, or brew install gcc, or set CC to the one to use",
    )


def test_the_headers_of_c(tmp_path: Path) -> None:
    done = build(tmp_path, CC="gcc -nostdinc")
    assert "the C compiler gcc does not work (" in done.stderr
    assert "stdio.h" in done.stderr
    assert "apk add gcc musl-dev" in done.stderr.splitlines()[-1]


def test_the_headers_of_python(tmp_path: Path) -> None:
    ends_with(
        build(tmp_path, python=NO_HEADERS),
        "Python.h is missing: apt install python3-dev, or apk add python3-dev, "
        "or dnf install python3-devel, or brew install python",
    )


@pytest.mark.parametrize(
    ("switch", "value", "line"),
    [
        ("CWIST_JQ_WITHOUT", "redis,nats", "CWIST_JQ_WITHOUT leaves no engine to build"),
        ("CWIST_JQ_WITHOUT", "kafka", "CWIST_JQ_WITHOUT is 'kafka'; allowed: redis, nats, tls"),
        ("CWIST_JQ_SYSTEM", "yes", "CWIST_JQ_SYSTEM is 'yes'; allowed: 0 or 1"),
    ],
)
def test_a_switch_that_says_nothing(tmp_path: Path, switch: str, value: str, line: str) -> None:
    ends_with(build(tmp_path, **{switch: value}), line)


def test_the_library_of_the_system(tmp_path: Path) -> None:
    done = build(tmp_path, CWIST_JQ_SYSTEM="1", **modules_but(tmp_path / "modules"))
    assert done.returncode != 0
    line = "cwist-jq .* or newer is missing: apt install libcwist-jq-dev, or unset CWIST_JQ_SYSTEM"
    assert re.search(line, done.stderr)


def test_cffi(tmp_path: Path) -> None:
    """K02: setuptools would make a wheel without the extension, and call that a success."""
    ends_with(
        build(tmp_path, python=NO_CFFI),
        "cffi is missing: apt install python3-cffi, or apk add py3-cffi, "
        "or dnf install python3-cffi, or brew install cffi, or pip install cffi",
    )


def test_a_setuptools_that_is_too_old(tmp_path: Path) -> None:
    """Without build isolation, pip takes the one that is installed."""
    refusing = """
def setup(**options):
    raise ValueError("invalid pyproject.toml config: `project.license`")
setuptools.setup = setup
setuptools.__version__ = "66.1.1"
"""
    ends_with(
        build(tmp_path, python=refusing),
        "setuptools 66.1.1 is too old, 77.0.3 or newer is needed: "
        "pip install 'setuptools>=77.0.3', or build without --no-build-isolation",
    )


def test_a_free_threaded_python_that_is_too_old(tmp_path: Path) -> None:
    """F09: 3.13t is refused in one line."""
    ends_with(
        build(
            tmp_path, python=f"{FREE_THREADED}\nsys.version_info = Version(3, 13, 1, 'final', 0)"
        ),
        "the free-threaded build of Python is supported from 3.14 on; use the usual build",
    )


@pytest.mark.parametrize(("free_threaded", "tag"), [(False, "cp39"), (True, False)])
def test_the_stable_abi_is_for_the_usual_python(free_threaded: bool, tag: object) -> None:  # noqa: FBT001
    """F09: 3.14t gets wheels for its version alone."""
    program = OTHER_PYTHON.format(
        python=f"""
sys.version_info = Version(3, 14, 0, 'final', 0)
{FREE_THREADED if free_threaded else ""}
def setup(**options):
    print(options["options"].get("bdist_wheel", {{}}).get("py_limited_api", False))
setuptools.setup = setup
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(tag)
