"""The README's examples run as they stand there, but for the address of the server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUILD = ROOT / "build" / "c"


def example(language: str, page: str = README) -> str:
    """The examples of a language, as one program."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert blocks
    return "".join(blocks)


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_example(url: str) -> None:
    program = example("python")
    assert "redis://127.0.0.1:6379" in program
    printed = run([sys.executable, "-c", program.replace("redis://127.0.0.1:6379", url)])
    first, _, numbers = printed.partition("\n")
    assert re.fullmatch(r"""\S+ welcome b'{"to": "a@b.co"}' 1""", first)
    assert numbers.split() == [f"b'{n}'" for n in range(1000)]


def test_the_python_page(url: str) -> None:
    program = example("python", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"))
    printed = run([sys.executable, "-c", program.replace("redis://127.0.0.1:6379", url)])
    assert printed == (
        "True True\n"
        "b'user 7' {'traceparent': '00-1'}\n"
        "b'weekly' {}\n"
        "order rejected no such article 1\n"
        "b'bad order'\n"
        "0 0\n"
        "1\n"
        "None True\n"
        "1 0 0 0 1\n"
        "1\n"
        "plain b'one'\nplain b'two'\nurgent b'three'\n"
    )


def test_the_testing_page() -> None:
    program = example("python", (ROOT / "docs" / "testing.md").read_text(encoding="utf-8"))
    assert run([sys.executable, "-c", program]) == "welcome b'hello'\n"


def test_the_asyncio_page(url: str) -> None:
    program = example("python", (ROOT / "docs" / "asyncio.md").read_text(encoding="utf-8"))
    assert run([sys.executable, "-c", program.replace("redis://127.0.0.1:6379", url)]) == (
        "b'hello'\n"
    )


def test_the_c_example_with_the_installed_library(url: str, tmp_path: Path) -> None:
    run(["cmake", "--install", str(BUILD), "--prefix", str(tmp_path)])
    source = tmp_path / "worker.c"
    source.write_text(example("c"), encoding="utf-8")
    (config,) = tmp_path.rglob("cwist-jq.pc")
    flags = run(
        ["pkg-config", "--cflags", "--libs", "cwist-jq"], {"PKG_CONFIG_PATH": str(config.parent)}
    ).split()
    program = tmp_path / "worker"
    run(["cc", "-Wall", "-Werror", str(source), *flags, "-o", str(program)])
    printed = run([str(program), url], {"LD_LIBRARY_PATH": str(config.parents[1])})
    assert printed == 'welcome: {"to":"a@b.co"}\n'


def test_the_commands_that_the_readme_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
