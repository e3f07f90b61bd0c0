"""Installed trees of the C library, and a project outside them: tests/c/install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.servers import ROOT

CONSUMER = ROOT / "tests" / "c" / "install"
COUNT = 50


def run(
    *command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, whatever it returns."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def output(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What a command that must succeed prints."""
    done = run(*command, cwd=cwd, env=env)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Tree:
    """An installed library."""

    prefix: Path
    build: Path

    @property
    def lib(self) -> Path:
        """The folder of the libraries."""
        return self.prefix / "lib"

    def pkg_config(self, *options: str) -> str:
        """What pkg-config says to a project that asks for the library."""
        env = {"PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        return output("pkg-config", *options, "cwist-jq", env=env).strip()

    def flags(self, *options: str) -> str:
        """What a project compiles and links with."""
        return self.pkg_config("--cflags", "--libs", *options)


@dataclass(frozen=True)
class Programs:
    """Built programs of the project, and what they need to run."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def say(self, name: str, *arguments: str) -> str:
        """What a program prints that must succeed."""
        env = {"LD_BIND_NOW": "1", **self.env}
        return output(self.folder / name, *arguments, env=env)

    def needed(self, name: str) -> set[str]:
        """The libraries that a program names itself."""
        lines = output("readelf", "-d", self.folder / name).splitlines()
        return {line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line}

    def work(self, url: str, queue: str) -> None:
        """Every job that a producer enqueues is done by a worker: in C, then in C++."""
        for worker in ("worker", "worker_cpp"):
            name = f"{queue}-{worker}"
            assert self.say("producer", url, name, str(COUNT)) == f"enqueued {COUNT}\n"
            said = self.say(worker, url, name, str(COUNT))
            assert said == f"done {COUNT} retried 1 sum {sum(range(COUNT))}\n"


@dataclass(frozen=True)
class Installed:
    """The wheel, installed into a folder of its own."""

    folder: Path

    def config(self, *options: str) -> str:
        """What cwist-jq-config prints."""
        program = self.folder / "bin" / "cwist-jq-config"
        return output(program, *options, env={"PYTHONPATH": str(self.folder)}).strip()

    def ask(self, expression: str) -> str:
        """The text of an expression in Python, outside the tree."""
        program = f"import cwist_jq; print({expression})"
        return output(sys.executable, "-c", program, cwd=self.folder).strip()


def _install(build: Path, folder: Path) -> Tree:
    """Installs a build, and moves the tree to where nobody expects it."""
    first = folder / "first"
    output("cmake", "--install", build, "--prefix", first, "--strip")
    moved = folder / "moved here"
    first.rename(moved)
    return Tree(moved, build)


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """What `make build` built, with both libraries and both engines, installed and moved."""
    return _install(ROOT / "build" / "c", tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="session")
def make_tree(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tree]:
    """Builds with options of CMake, installs and moves: make_tree("-DCWIST_JQ_STATIC=OFF")."""

    def make(*options: str) -> Tree:
        folder = tmp_path_factory.mktemp("tree")
        build = folder / "build"
        plain = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O0 -g0", "-DCWIST_JQ_WERROR=ON"]
        output("cmake", "-S", ROOT / "csrc", "-B", build, *plain, *options)
        output("cmake", "--build", build, "-j", str(os.cpu_count()))
        return _install(build, folder)

    return make


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The one wheel in dist/."""
    found = list((ROOT / "dist").glob("cwist_jq-*.whl"))
    if len(found) != 1:
        pytest.skip(f"dist/ holds {len(found)} wheels (make wheel makes one)")
    folder = tmp_path_factory.mktemp("wheel") / "installed"
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    install = ["install", "--no-deps", "--no-index", "--target", str(folder), str(found[0])]
    subprocess.run([*pip, *install], check=True)
    return Installed(folder)


@pytest.fixture(scope="session")
def make_programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds the project with flags for the compiler: make_programs(flags)."""

    def make(flags: str) -> Path:
        folder = tmp_path_factory.mktemp("programs") / "project"
        shutil.copytree(CONSUMER, folder)
        output("make", "-j2", f"FLAGS={flags}", cwd=folder)
        return folder

    return make


@pytest.fixture(scope="session")
def make_with_cmake(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds the project with CMake: make_with_cmake(*options)."""

    def make(*options: str) -> Path:
        folder = tmp_path_factory.mktemp("programs")
        output("cmake", "-S", CONSUMER, "-B", folder, *options)
        output("cmake", "--build", folder)
        return folder

    return make


def undefined_symbols(library: Path) -> list[str]:
    """What the dynamic linker cannot find for a library and all that it loads."""
    done = run("ldd", "-r", library)
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return [line for line in lines if "undefined symbol" in line or "not found" in line]
