"""What stands between a tag and a release: the scripts, run in a small repository of their own."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ["release-check", "release-files", "release-notes", "version"]
HEADER = "include/cwist/version.h"
CHANGELOG = """# Changelog

## 1.2.3 - 2026-11-30

### Added

* Something.

## 1.2.2 - 2026-10-01

* Something older.
"""


def git(tree: Path, *arguments: str) -> None:
    author = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *author, "-C", str(tree), *arguments], check=True, capture_output=True)


def script(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    words = [str(tree / ".ci" / command[0]), *command[1:]]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clean repository at version 1.2.3."""
    folder = tmp_path / "tree"
    (folder / ".ci").mkdir(parents=True)
    for name in SCRIPTS:
        shutil.copy2(ROOT / ".ci" / name, folder / ".ci" / name)
    header = (ROOT / HEADER).read_text("utf-8")
    for name, number in {"MAJOR": 1, "MINOR": 2, "PATCH": 3}.items():
        lines = header.splitlines(keepends=True)
        start = f"#define CWIST_JQ_VERSION_{name} "
        header = "".join(f"{start}{number}\n" if x.startswith(start) else x for x in lines)
    (folder / HEADER).parent.mkdir(parents=True)
    (folder / HEADER).write_text(header, "utf-8")
    (folder / "CHANGELOG.md").write_text(CHANGELOG, "utf-8")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    return folder


def refusal(tree: Path, tag: str) -> str:
    """The one line with which a release is refused."""
    done = script(tree, "release-check", tag)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def change(tree: Path, old: str, new: str) -> None:
    path = tree / "CHANGELOG.md"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    git(tree, "commit", "-q", "-a", "-m", "changed")


def test_a_tag_that_agrees_is_let_through(tree: Path) -> None:
    done = script(tree, "release-check", "v1.2.3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2.3rc1", "v1x2x3"])
def test_a_tag_of_another_version_is_refused(tree: Path, tag: str) -> None:
    assert "the tag must be v1.2.3" in refusal(tree, tag)


def test_a_changelog_without_the_version_is_refused(tree: Path) -> None:
    change(tree, "## 1.2.3 - 2026-11-30", "## 1.2.3")
    assert "no heading '## 1.2.3 - YYYY-MM-DD'" in refusal(tree, "v1.2.3")


def test_entries_that_would_be_forgotten_are_refused(tree: Path) -> None:
    change(tree, "## 1.2.3", "## Unreleased\n\n* New.\n\n## 1.2.3")
    assert "entries under Unreleased" in refusal(tree, "v1.2.3")


def test_an_empty_head_for_what_comes_is_fine(tree: Path) -> None:
    change(tree, "## 1.2.3", "## Unreleased\n\n## 1.2.3")
    assert script(tree, "release-check", "v1.2.3").returncode == 0


def test_a_version_without_notes_is_refused(tree: Path) -> None:
    change(tree, "### Added\n\n* Something.\n\n", "")
    assert "says nothing about 1.2.3" in refusal(tree, "v1.2.3")


def test_uncommitted_changes_are_refused(tree: Path) -> None:
    (tree / "new").touch()
    assert "uncommitted changes" in refusal(tree, "v1.2.3")


def test_the_files_of_a_release(tree: Path, tmp_path: Path) -> None:
    archives = []
    for name in ("first", "second"):
        done = script(tree, "release-files", str(tmp_path / name))
        assert (done.returncode, done.stderr) == (0, "")
        archives.append(tmp_path / name / "libcwist_jq-1.2.3.tar.gz")
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as archive:
        assert f"libcwist_jq-1.2.3/{HEADER}" in archive.getnames()
    notes = (tmp_path / "first" / "notes.md").read_text("utf-8")
    assert notes.startswith("### Added\n\n* Something.\n")
    assert "older" not in notes


def test_the_version_is_that_of_the_package() -> None:
    import cwist_jq

    assert script(ROOT, "version").stdout == cwist_jq.__version__ + "\n"
