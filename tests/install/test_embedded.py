"""The C library as a part of another CMake project: add_subdirectory, and FetchContent likewise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import ROOT

from .conftest import output

PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(app C)
set(CWIST_JQ_WITH_NATS OFF CACHE BOOL "" FORCE)
add_subdirectory({csrc} cwist_jq)
foreach(library cwist_jq cwist_jq_static)
  add_executable(with_${{library}} app.c)
  target_link_libraries(with_${{library}} PRIVATE cwist_jq::${{library}})
endforeach()
install(TARGETS with_cwist_jq_static RUNTIME DESTINATION bin)

get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)
if(options OR CMAKE_BUILD_TYPE OR CMAKE_C_STANDARD)
  message(FATAL_ERROR "changed: ${{options}} ${{CMAKE_BUILD_TYPE}} ${{CMAKE_C_STANDARD}}")
endif()
"""
PROGRAM = """
#include <stdio.h>

#include <cwist/sys/job/durable_queue_ext.h>

int main(void)
{
    return puts(cwist_job_version()) < 0;
}
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build folder of a project that holds the library."""
    folder = tmp_path_factory.mktemp("embedded")
    (folder / "CMakeLists.txt").write_text(PROJECT.format(csrc=ROOT / "csrc"), encoding="utf-8")
    (folder / "app.c").write_text(PROGRAM, encoding="utf-8")
    build = folder / "build"
    output("cmake", "-S", folder, "-B", build, "-DCMAKE_C_FLAGS=-O0 -g0")
    output("cmake", "--build", build, "-j2")
    return build


@pytest.mark.parametrize("library", ["cwist_jq", "cwist_jq_static"])
def test_the_targets_have_the_names_of_the_installed_package(project: Path, library: str) -> None:
    text = (ROOT / "include" / "cwist" / "version.h").read_text(encoding="utf-8")
    first, second, third = output(project / f"with_{library}").strip().split(".")
    assert f"MAJOR {first}\n" in text
    assert f"MINOR {second}\n" in text
    assert f"PATCH {third}\n" in text


def test_only_the_project_itself_is_installed(project: Path, tmp_path: Path) -> None:
    output("cmake", "--install", project, "--prefix", tmp_path)
    there = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert there == ["with_cwist_jq_static"]
