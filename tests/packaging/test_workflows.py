"""The workflows: pinned, without rights that they do not need, and made of scripts of the tree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path.name for path in FOLDER.glob("*.yml"))
GATE = "CWIST_TEST_REQUIRE_DURABLE_QUEUE"

# The jobs that may do more than read, and what for.
RIGHTS = {
    ("release.yml", "attest"): {"id-token": "write", "attestations": "write"},
    ("release.yml", "pypi"): {"id-token": "write"},
    ("release.yml", "github"): {"contents": "write"},
}


def load(name: str) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return loaded


def jobs(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from load(name)["jobs"].items()


def steps(name: str) -> Iterator[dict[str, Any]]:
    for _, job in jobs(name):
        yield from job.get("steps", [])


def commands(name: str) -> list[str]:
    return [step["run"] for step in steps(name) if "run" in step]


def test_all_workflows_are_looked_at() -> None:
    assert {"durable-queue.yml", "release.yml", "tests.yml", "wheels.yml"} <= set(WORKFLOWS)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_digest(name: str) -> None:
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if re.match(r"\s*(- )?uses:", line) and "uses: ./" not in line:
            assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_an_action_has_one_version() -> None:
    used: dict[str, set[str]] = {}
    for name in WORKFLOWS:
        for action, rest in re.findall(r"uses: ([\w/-]+)@(.*)", (FOLDER / name).read_text("utf-8")):
            used.setdefault(action, set()).add(rest)
    assert all(len(versions) == 1 for versions in used.values()), used


@pytest.mark.parametrize("name", WORKFLOWS)
def test_images_are_pinned_by_digest(name: str) -> None:
    text = (FOLDER / name).read_text("utf-8")
    for image in re.findall(r"^\s*(?:- )?image: (?!\$)(.*)$", text, re.MULTILINE):
        assert re.fullmatch(r"debian:1[23]@sha256:[0-9a-f]{64}", image), image


@pytest.mark.parametrize("name", WORKFLOWS)
def test_rights_are_least(name: str) -> None:
    assert load(name)["permissions"] == {}
    for job_name, job in jobs(name):
        allowed = RIGHTS.get((name, job_name), {"contents": "read"})
        assert job["permissions"] == allowed, job_name
        assert "timeout-minutes" in job or "uses" in job, job_name


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_credentials_stay_in_the_checkout(name: str) -> None:
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", WORKFLOWS)
def test_steps_are_scripts_of_the_tree(name: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for command in commands(name):
        assert "\n" not in command.strip(), f"more than one line: put it into a script: {command}"
        assert "${{" not in command, f"pass it through env: {command}"
        word, *rest = command.split()
        if word == "make":
            assert rest[0] in targets or rest[0] == '"$CHECK"', command
        elif word == "python":
            assert rest[0] == "-m", command
            assert rest[1] in {"pip", "cibuildwheel", "twine"}, command
        else:
            assert os.access(ROOT / word, os.X_OK), command


def test_the_sanitizers_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    ((_, job),) = jobs("sanitizers.yml")
    matrix = job["strategy"]["matrix"]
    for check in [*matrix["check"], *(more["check"] for more in matrix["include"])]:
        assert re.search(rf"^{check}:", makefile, re.MULTILINE), check


def test_the_gate_is_shut() -> None:
    """Where tests run, a missing server fails the run."""
    ((_, job),) = jobs("durable-queue.yml")
    assert job["env"][GATE] == "1"
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    for name in WORKFLOWS:
        for job_name, job in jobs(name):
            said = " ".join(step.get("run", "") for step in job.get("steps", []))
            if re.search(r"make (test|matrix|try-python|\"\$CHECK\")", said):
                assert job["env"][GATE] == "1", (name, job_name)


def test_every_supported_python_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    supported = {
        match[1]
        for line in project["classifiers"]
        if (match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    }
    tests = load("tests.yml")["jobs"]
    in_tree, installed = (
        set(tests[name]["strategy"]["matrix"]["python"]) for name in ("suite", "install")
    )
    assert in_tree | installed == supported | {"3.14t"}
    later = load("wheels.yml")["jobs"]["later-pythons"]["strategy"]["matrix"]["python"]
    assert set(later) == supported | {"3.14t"}


# ---- what wheels are made of ----


def test_the_ports_are_pinned() -> None:
    manifest = json.loads((ROOT / "packaging" / "vcpkg" / "vcpkg.json").read_text("utf-8"))
    assert re.fullmatch("[0-9a-f]{40}", manifest["builtin-baseline"])
    assert {"hiredis", "cnats", "openssl"} <= {str(port) for port in manifest["dependencies"][:3]}


@pytest.mark.parametrize("system", ["linux", "osx", "windows"])
def test_triplets_give_shared_libraries(system: str, tmp_path: Path) -> None:
    triplet = ROOT / "packaging" / "vcpkg" / "triplets" / f"wheel-{system}.cmake"
    program = tmp_path / "program.cmake"
    program.write_text(
        f'include("{triplet}")\nmessage("${{VCPKG_LIBRARY_LINKAGE}} ${{VCPKG_BUILD_TYPE}}")\n',
        "utf-8",
    )
    done = subprocess.run(["cmake", "-P", program], text=True, capture_output=True, check=True)
    assert done.stderr.strip() == "dynamic release"


def test_macos_libraries_run_where_the_wheel_says() -> None:
    """K03: one deployment target for the wheel and for what it bundles."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    target = settings["macos"]["environment"]["MACOSX_DEPLOYMENT_TARGET"]
    triplet = (ROOT / "packaging" / "vcpkg" / "triplets" / "wheel-osx.cmake").read_text("utf-8")
    assert f"set(VCPKG_OSX_DEPLOYMENT_TARGET {target})" in triplet


def test_the_folders_of_the_libraries_are_those_of_the_script() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    script = (ROOT / ".ci" / "wheel-libraries").read_text("utf-8")
    places = dict(re.findall(r"triplet=(wheel-\w+)\n\s*prefix=(\S+)", script))
    for system, triplet in {"linux": "linux", "macos": "osx", "windows": "windows"}.items():
        folder = f"{places[f'wheel-{triplet}']}/wheel-{triplet}/lib/pkgconfig"
        assert settings[system]["environment"]["PKG_CONFIG_LIBDIR"] == folder


def test_a_tool_has_one_version() -> None:
    """Also when two lists name it. With a marker that is for the Pythons which it means."""
    pins: dict[str, set[str]] = {}
    for path in [*ROOT.glob("packaging/*.txt"), ROOT / "tests" / "requirements.txt"]:
        for line in path.read_text("utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                pin = re.fullmatch(r"([\w.-]+)==([\w.]+)(; .*)?", line)
                assert pin is not None, f"{path.name}: {line}"
                pins.setdefault(f"{pin[1]}{pin[3] or ''}", set()).add(pin[2])
    assert all(len(versions) == 1 for versions in pins.values()), pins


def test_a_wheel_is_tested_with_an_older_python_than_the_servers_need(tmp_path: Path) -> None:
    """The program of cibuildwheel's test-command says what is missing, in one line."""
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "test-wheel.py")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "test_wheel: no Python 3.11 or newer; name one in CWIST_TEST_PYTHON\n"
