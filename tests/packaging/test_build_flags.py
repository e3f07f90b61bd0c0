"""cwist-jq-config, get_include() and get_library_dirs(): C programs build with what they say."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cwist_jq
from cwist_jq import build_flags

PROGRAM = """
#include <stdio.h>
#include <cwist/sys/job/durable_queue_ext.h>

int main(void)
{
    puts(cwist_job_version());
    return 0;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(installed C)
find_package(cwist_jq 0.1 REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE cwist_jq::cwist_jq)
"""


def config(*options: str) -> str:
    """What the installed program prints."""
    command = [str(Path(sys.executable).with_name("cwist-jq-config")), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.rstrip("\n")


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    return source


def test_the_flags_build_a_program_that_runs(program: Path) -> None:
    built = program.with_suffix("")
    flags = shlex.split(config("--cflags", "--libs"))
    run("cc", "-Werror", program, *flags, "-o", built)
    assert run(built).strip() == config("--version") == cwist_jq.__version__


def test_pkg_config_finds_it(program: Path) -> None:
    built = program.with_suffix("")
    environment = {"PKG_CONFIG_PATH": config("--pkgconfigdir")}
    flags = run("pkg-config", "--cflags", "--libs", "cwist-jq", **environment).split()
    folder = run("pkg-config", "--variable=libdir", "cwist-jq", **environment).strip()
    run("cc", "-Werror", program, *flags, f"-Wl,-rpath,{folder}", "-o", built)
    assert run(built).strip() == cwist_jq.__version__
    said = run("pkg-config", "--modversion", "cwist-jq", **environment)
    assert said.strip() == cwist_jq.__version__


def test_cmake_finds_it(program: Path) -> None:
    folder = program.parent
    (folder / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", folder, "-B", folder / "b", f"-Dcwist_jq_DIR={config('--cmakedir')}")
    run("cmake", "--build", folder / "b")
    assert run(folder / "b/program").strip() == cwist_jq.__version__


def test_the_functions_and_the_program_agree() -> None:
    assert config("--cflags") == f"-I{cwist_jq.get_include()}"
    (folder,) = cwist_jq.get_library_dirs()
    assert config("--libs") == f"-L{folder} -Wl,-rpath,{folder} -lcwist_jq"
    assert Path(cwist_jq.get_include(), "cwist/sys/job/durable_queue.h").is_file()


@pytest.mark.parametrize("name", ["a b", "a(b)", "it's", "a&b;c", "$HOME"])
def test_what_a_shell_reads_otherwise_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    package = tmp_path / name
    (package / "include").mkdir(parents=True)
    monkeypatch.setattr(build_flags, "_PACKAGE", str(package))
    said = run("sh", "-c", f"printf %s {build_flags._cflags()}")
    assert said == f"-I{package}/include"


def test_a_package_of_the_system_says_where_the_headers_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_flags, "_PACKAGE", str(tmp_path))
    for function in (cwist_jq.get_include, cwist_jq.get_library_dirs):
        with pytest.raises(cwist_jq.Unsupported, match="pkg-config --cflags --libs cwist-jq"):
            function()
    assert build_flags.main(["--libs"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1


def test_a_question_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build_flags.main([])
    assert caught.value.code == 2
    assert "say what to print" in capsys.readouterr().err
