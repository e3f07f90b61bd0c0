"""Builds from source with the switches of setup.py, installed away from the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import cwist_jq

ROOT = Path(__file__).parents[2]
INPUTS = (
    "csrc",
    "cwist_jq",
    "include",
    "packaging",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
BUILT = ("*.so*", "__pycache__", "include", "lib")
URLS = {"redis": "redis://127.0.0.1:1", "nats": "nats://127.0.0.1:1"}
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")

CONNECT = """
import sys
import cwist_jq

for url in sys.argv[1:]:
    try:
        cwist_jq.connect(url, operation_timeout=0.1)
    except cwist_jq.Error as error:
        print(type(error).__name__)
"""

WHERE = """
import cwist_jq
try:
    print(cwist_jq.get_include())
except cwist_jq.Unsupported as error:
    print(error)
"""


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what a build needs."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for name in INPUTS:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns(*BUILT) if name == "cwist_jq" else None
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, copy / name)
    return copy


def install(tree: Path, **environment: str) -> Path:
    """Builds a wheel of the tree, offline; the folder into which it was installed."""
    wheels = tree.parent / f"wheels-{len(list(tree.parent.iterdir()))}"
    offline = ("--no-build-isolation", "--no-deps", "--no-index")
    done = run(
        *PIP, "wheel", "-q", *offline, "-w", str(wheels), str(tree), CFLAGS="-O0", **environment
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.iterdir()
    assert re.fullmatch(r"cwist_jq-[0-9.]+-cp39-abi3-linux_\w+\.whl", wheel.name)
    target = wheels / "installed"
    done = run(*PIP, "install", "-q", "--no-deps", "--target", str(target), str(wheel))
    assert done.returncode == 0, done.stderr
    return target


def python(program: str, target: Path, *arguments: str, **environment: str) -> str:
    """What a program prints that uses the installed package."""
    command = (sys.executable, "-c", program, *arguments)
    done = subprocess.run(
        command,
        cwd=target,
        env=os.environ | {"PYTHONPATH": str(target)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sdist_is_the_same_whoever_makes_it(tmp_path: Path) -> None:
    made: list[Path] = []
    for mask in ("022", "077"):
        folder = tmp_path / mask
        command = f'umask {mask} && exec "$0" setup.py -q sdist --dist-dir "$1"'
        done = subprocess.run(
            ["sh", "-c", command, sys.executable, str(folder)],
            cwd=ROOT,
            env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        made += folder.iterdir()
    first, second = made
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        owners = {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in archive}
    assert owners == {(0, 0, "", "")}


@pytest.mark.slow
def test_a_build_has_the_engines_that_were_asked_for_last(tree: Path) -> None:
    """Also when the tree still holds the build of other settings. All modules can be imported."""
    target = install(tree, CWIST_JQ_WITHOUT="nats, tls")
    said = python(CONNECT, target, *URLS.values()).split()
    assert said == ["ConnectionFailed", "Unsupported"]
    (left,) = (tree / "build").glob("lib*/cwist_jq")
    (left / "gone.py").touch()
    target = install(tree, CWIST_JQ_WITHOUT="redis")
    said = python(CONNECT, target, *URLS.values()).split()
    assert said == ["Unsupported", "ConnectionFailed"]
    assert not (target / "cwist_jq/gone.py").exists()
    names = sorted(path.stem for path in (target / "cwist_jq").glob("*.py"))
    program = "".join(f"import cwist_jq.{name}\n" for name in names)
    assert python(program, target) == ""


@pytest.mark.slow
def test_the_library_of_the_system_is_used_when_asked_for(tree: Path, tmp_path: Path) -> None:
    """CWIST_JQ_SYSTEM=1, for packages of a distribution: nothing is bundled."""
    prefix = tmp_path / "a prefix"
    done = run("cmake", "--install", str(ROOT / "build/c"), "--prefix", str(prefix))
    assert done.returncode == 0, done.stderr
    (module,) = prefix.rglob("cwist-jq.pc")
    library = str(module.parents[1])
    target = install(tree, CWIST_JQ_SYSTEM="1", PKG_CONFIG_PATH=str(module.parent))
    assert not (target / "cwist_jq/lib").exists()
    assert not (target / "cwist_jq/include").exists()
    (extension,) = (target / "cwist_jq").glob("_native*.so")
    assert library in run("ldd", str(extension), LD_LIBRARY_PATH=library).stdout
    said = python(WHERE, target, LD_LIBRARY_PATH=library)
    assert "pkg-config --cflags --libs cwist-jq" in said


def test_the_tree_holds_one_library_for_python_and_for_c() -> None:
    """K02: the extension names the library that it needs, and finds it beside itself."""
    package = Path(cwist_jq.__file__).parent
    (extension,) = package.glob("_native*.so")
    dynamic = run("readelf", "-d", str(extension)).stdout
    assert "Shared library: [libcwist_jq.so.0]" in dynamic
    assert "$ORIGIN/lib" in dynamic
    assert "libhiredis" not in dynamic
    library = package / "lib/libcwist_jq.so.0"
    assert f"libcwist_jq.so.0 => {library}" in run("ldd", str(extension)).stdout
    done = run(sys.executable, str(ROOT / "csrc/tools/check_exports.py"), str(library))
    assert done.returncode == 0, done.stderr


def test_another_library_in_the_search_path_is_not_taken(tmp_path: Path) -> None:
    """K02: the package loads its own library, whatever LD_LIBRARY_PATH is for."""
    package = Path(cwist_jq.__file__).parent
    (tmp_path / "libcwist_jq.so.0").write_bytes(b"")
    (extension,) = package.glob("_native*.so")
    done = run("ldd", str(extension), LD_LIBRARY_PATH=str(tmp_path))
    assert f"libcwist_jq.so.0 => {package}/lib/libcwist_jq.so.0" in done.stdout, done.stderr


def test_no_symbol_is_missing() -> None:
    """K01: every symbol of the library is found when it is loaded."""
    library = Path(cwist_jq.__file__).parent / "lib/libcwist_jq.so.0"
    done = run("ldd", "-r", str(library))
    assert "undefined" not in done.stdout + done.stderr
    assert "not found" not in done.stdout
    assert "FLAGS_1" in run("readelf", "-d", str(library)).stdout  # -z now
