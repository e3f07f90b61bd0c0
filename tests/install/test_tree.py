"""The C library as `cmake --install` leaves it, after the tree was moved elsewhere."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import ROOT

from .conftest import CONSUMER, Programs, Tree, output, run, undefined_symbols

WAYS = ("pkg-config", "cmake", "pkg-config-static", "cmake-static")


@pytest.fixture(scope="session", params=WAYS)
def programs(
    request: pytest.FixtureRequest,
    tree: Tree,
    make_tree: Callable[..., Tree],
    make_programs: Callable[..., Path],
    make_with_cmake: Callable[..., Path],
) -> Programs:
    """The project, built in each way that the documentation names."""
    if request.param == "pkg-config":
        return Programs(make_programs(tree.flags()), {"LD_LIBRARY_PATH": str(tree.lib)})
    if request.param == "pkg-config-static":
        static = make_tree("-DCWIST_JQ_SHARED=OFF")
        return Programs(make_programs(static.flags("--static")))
    options = [f"-DCMAKE_PREFIX_PATH={tree.prefix}"]
    if request.param == "cmake-static":
        options.append("-DSTATIC=ON")
    return Programs(make_with_cmake(*options))


def test_producer_and_worker(
    programs: Programs, request: pytest.FixtureRequest, url: str, queue_name: str
) -> None:
    way = request.node.callspec.params["programs"]
    programs.work(url, queue_name)
    for name in ("producer", "worker", "worker_cpp"):
        ours = {library for library in programs.needed(name) if "cwist" in library}
        assert ours == (set() if way.endswith("static") else {"libcwist_jq.so.0"})


# ---- what lies in the tree ----


def test_the_files(tree: Tree) -> None:
    names = {str(path.relative_to(tree.prefix)) for path in tree.prefix.rglob("*")}
    version = tree.pkg_config("--modversion")
    headers = {
        f"include/{path.relative_to(ROOT / 'include')}" for path in (ROOT / "include").rglob("*.h")
    }
    assert names >= headers | {
        f"lib/libcwist_jq.so.0.{version}",
        "lib/libcwist_jq.so.0",
        "lib/libcwist_jq.so",
        "lib/libcwist_jq.a",
        "lib/pkgconfig/cwist-jq.pc",
        "lib/cmake/cwist_jq/cwist_jq-config.cmake",
        "lib/cmake/cwist_jq/cwist_jq-config-version.cmake",
        "share/man/man3/cwist_job_queue_claim.3",
        "share/man/man7/cwist-jq.7",
    }
    assert {name.partition("/")[0] for name in names} == {"include", "lib", "share"}


def test_the_shared_library(tree: Tree) -> None:
    library = tree.lib / "libcwist_jq.so"
    dynamic = output("readelf", "-d", library)
    assert "Library soname: [libcwist_jq.so.0]" in dynamic
    assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic)
    assert undefined_symbols(library) == []
    check = ROOT / "csrc" / "tools" / "check_exports.py"
    assert "as listed" in output(sys.executable, check, library)


def test_nothing_names_the_place_of_the_build(tree: Tree, tmp_path: Path) -> None:
    for path in tree.prefix.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        copy = shutil.copy2(path, tmp_path / "copy")
        if path.suffix == ".a":
            output("strip", "--strip-debug", copy)
        content = Path(copy).read_bytes()
        for place in (ROOT, tree.build, tree.prefix.parent / "first"):
            assert str(place).encode() not in content, f"{path} names {place}"


# ---- a package that cannot be used says why ----


@pytest.mark.parametrize(
    ("removed", "option", "why"),
    [
        ("libcwist_jq.a", "-DSTATIC=ON", "the static library of cwist_jq is not installed"),
        ("libcwist_jq.so.0", "-DSTATIC=OFF", "the shared library of cwist_jq is not installed"),
        ("", "-DSTATIC=ON", "needs pkg-config and the development files of: hiredis libnats"),
    ],
)
def test_what_is_not_there(tree: Tree, tmp_path: Path, removed: str, option: str, why: str) -> None:
    prefix = tmp_path / "tree"
    shutil.copytree(tree.prefix, prefix, symlinks=True)
    env = {}
    if removed:
        (prefix / "lib" / removed).unlink()
    else:
        env = {"PKG_CONFIG_LIBDIR": "/nonexistent", "PKG_CONFIG_PATH": ""}
    source = ROOT / "tests" / "c" / "install"
    build = tmp_path / "build"
    done = run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", option, env=env)
    assert done.returncode != 0
    assert why in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("wanted", "good"), [("0.1", True), ("0.0", False), ("0.2", False), ("1", False)]
)
def test_versions_that_fit(tree: Tree, tmp_path: Path, wanted: str, *, good: bool) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\n"
        f"find_package(cwist_jq {wanted} REQUIRED)\n",
        encoding="utf-8",
    )
    prefix = f"-DCMAKE_PREFIX_PATH={tree.prefix}"
    done = run("cmake", "-S", tmp_path, "-B", tmp_path / "build", prefix)
    assert (done.returncode == 0) == good, done.stderr


def test_a_link_to_the_folder_of_the_libraries(tree: Tree, tmp_path: Path) -> None:
    """As /lib is one to /usr/lib: the headers are not beside it."""
    shutil.copytree(tree.prefix, tmp_path / "usr", symlinks=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    package = tmp_path / "lib" / "cmake" / "cwist_jq"
    build = tmp_path / "build"
    output("cmake", "-S", CONSUMER, "-B", build, f"-Dcwist_jq_DIR={package}")
    output("cmake", "--build", build, "--target", "producer")


# ---- one engine, one library ----

# The absent engine of each build, how a program is told, and the one library that is built.
ABSENT = {
    "redis": ("nats://127.0.0.1:1", "no NATS backend", "NATS", "STATIC"),
    "nats": ("redis://127.0.0.1:1", "no Redis backend", "REDIS", "SHARED"),
}


def test_a_library_of_one_engine(
    engine: str,
    url: str,
    queue_name: str,
    make_tree: Callable[..., Tree],
    make_programs: Callable[..., Path],
) -> None:
    """Redis alone in a shared library, NATS alone in a static one."""
    other_url, told, absent, left_out = ABSENT[engine]
    tree = make_tree(f"-DCWIST_JQ_WITH_{absent}=OFF", f"-DCWIST_JQ_{left_out}=OFF")
    libraries = {path.name for path in tree.lib.glob("libcwist_jq.*")}
    if left_out == "STATIC":
        assert libraries & {"libcwist_jq.so", "libcwist_jq.a"} == {"libcwist_jq.so"}
        flags = tree.flags()
    else:
        assert libraries == {"libcwist_jq.a"}
        flags = tree.flags("--static")
    programs = Programs(make_programs(flags), {"LD_LIBRARY_PATH": str(tree.lib)})
    programs.work(url, queue_name)
    for name in ("producer", "worker", "worker_cpp"):
        done = run(programs.folder / name, other_url, queue_name, "1", env=programs.env)
        assert done.returncode == 1
        assert told in done.stderr


def test_the_shared_library_needs_no_other_development_files(
    make_tree: Callable[..., Tree],
) -> None:
    tree = make_tree("-DCWIST_JQ_STATIC=OFF", "-DCWIST_JQ_WITH_NATS=OFF")
    env = {"PKG_CONFIG_LIBDIR": str(tree.lib / "pkgconfig"), "PKG_CONFIG_PATH": ""}
    assert "hiredis" not in output("pkg-config", "--cflags", "--libs", "cwist-jq", env=env)
