"""docs/c-library.md: its commands run in the order in which they stand there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import ROOT

from .conftest import CONSUMER, Installed, Programs, output

PAGE = (ROOT / "docs" / "c-library.md").read_text(encoding="utf-8")
# The Python wheel of the test stands for the one of the package index.
INSTALL_WHEEL = "pip install cwist_jq\n"


def blocks(language: str) -> list[str]:
    """The examples in one language."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory, wheel: Installed) -> Path:
    """A folder in which all commands of the page ran."""
    folder = tmp_path_factory.mktemp("page")
    for name in ("csrc", "include"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("worker.c", "worker_cpp.cpp", "producer.c"):
        shutil.copy2(CONSUMER / name, folder)
    (project,) = blocks("cmake")
    (folder / "CMakeLists.txt").write_text(project, encoding="utf-8")
    script = "".join(blocks("sh"))
    assert script.count(INSTALL_WHEEL) == 1
    commands = script.replace(INSTALL_WHEEL, "")
    env = {
        "PREFIX": str(folder / "prefix"),
        "PYTHONPATH": str(wheel.folder),
        "PATH": f"{wheel.folder / 'bin'}:{output('sh', '-c', 'echo $PATH').strip()}",
        "CFLAGS": "-O0",
        "LANG": "C",
    }
    output("sh", "-euc", commands, cwd=folder, env=env)
    return folder


def test_what_the_page_builds_runs(
    page: Path, url: str, queue_name: str, make_programs: Callable[..., Path]
) -> None:
    env = {"LD_LIBRARY_PATH": str(page / "prefix" / "lib")}
    static = output(
        *("pkg-config", "--static", "--cflags", "--libs", "cwist-jq"),
        env={"PKG_CONFIG_PATH": str(page / "prefix" / "static" / "lib" / "pkgconfig")},
    )
    producer = Programs(make_programs(static.strip()))
    for number, (name, needs) in enumerate(
        {
            "worker": env,
            "build/worker/worker": {},
            "worker-wheel": {},
            "worker-static": {},
            "worker-cpp": {},
        }.items()
    ):
        queue = f"{queue_name}-{number}"
        producer.say("producer", url, queue, "10")
        assert Programs(page, needs).say(name, url, queue, "10") == "done 10 retried 1 sum 45\n"


def test_the_page_names_every_option() -> None:
    text = (ROOT / "csrc" / "CMakeLists.txt").read_text(encoding="utf-8")
    options = re.findall(r"^option\((CWIST_JQ_\w+)", text, re.MULTILINE)
    for option in options:
        assert option in {"CWIST_JQ_TESTS", "CWIST_JQ_WERROR"} or f"| `{option}` |" in PAGE, option
