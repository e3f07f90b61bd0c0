"""Tries the project in roots of several Debian suites, one after the other, and prints a table.

    .ci/matrix [--check] [ROOT…]

.ci/matrix checks what this needs and starts it; .ci/root/ has what is done to a root and inside it.
Every root gets a clean clone of HEAD. Between runs a root keeps its packages, .venv and .servers.
Roots, logs and the table lie under build/matrix.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "build" / "matrix"
PRODUCTS = FOLDER / "dist"
#: Where the wheel and the sdist are made: the oldest glibc of all roots.
BUILDER = "debian12"
TIME_LIMIT = 3600.0
#: What set-up made in a clone and the next clone takes over.
KEPT = (".venv", ".servers")


@dataclass(frozen=True)
class Root:
    """A Debian suite and what is tried in it: "suite", "user", "wheel" or "sdist"."""

    suite: str
    what: str = "suite"


ROOTS = {
    "debian12": Root("bookworm"),
    "debian13": Root("trixie"),
    "debian-testing": Root("testing"),
    "debian12-user": Root("bookworm", "user"),
    "debian12-wheel": Root("bookworm", "wheel"),
    "debian13-wheel": Root("trixie", "wheel"),
    "debian-testing-wheel": Root("testing", "wheel"),
    "debian12-sdist": Root("bookworm", "sdist"),
    "debian13-sdist": Root("trixie", "sdist"),
}

#: How a root is asked for its versions, in /src. Whatever is not there prints nothing.
VERSIONS = {
    "Python": "python3 -V",
    "gcc": "gcc -dumpfullversion",
    "hiredis": "pkg-config --modversion hiredis",
    "libnats": "pkg-config --modversion libnats",
    "Redis": ".servers/redis-distribution/redis-server --version",
    "Valkey": ".servers/redis-valkey/redis-server --version",
    "nats-server": ".servers/nats-distribution/nats-server --version",
}


@dataclass
class Counts:
    """How many tests ended in which way, and how many were run again because they failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    again: int = 0


@dataclass
class Row:
    """What came out for one root."""

    name: str
    good: bool
    seconds: float
    counts: Counts
    versions: dict[str, str] = field(default_factory=dict)


def count(text: str) -> Counts:
    """Adds up the closing lines of ctest and pytest, and the engines of lifecycle.py."""
    lives = re.findall(r"^lifecycle: .*: as they should be", text, re.MULTILINE)
    total = Counts(passed=len(lives))
    for failed, ran in re.findall(
        r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", text, re.MULTILINE
    ):
        total.failed += int(failed)
        total.passed += int(ran) - int(failed)
    # ctest counts a skipped test as passed.
    skipped = len(re.findall(r"^\s*\d+ - \S+ \(Skipped\)", text, re.MULTILINE))
    total.passed -= skipped
    total.skipped += skipped
    for line in re.findall(
        r"^(?:=+ )?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s", text, re.MULTILINE
    ):
        for number, word in re.findall(r"(\d+) ([a-z]+)", line):
            if word in ("passed", "skipped"):
                setattr(total, word, getattr(total, word) + int(number))
            elif word in ("failed", "error", "errors"):
                total.failed += int(number)
    # What was run again stands in two closing lines.
    again = re.findall(r"^(?:c tests|test): RUN AGAIN, ALONE: (\d+)", text, re.MULTILINE)
    total.again = sum(map(int, again))
    total.failed -= total.again
    return total


def table(rows: Sequence[Row]) -> str:
    """The rows as a table in Markdown."""
    heads = ["root", *VERSIONS, "passed", "failed", "skipped", "again", "time", "result"]
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        minutes, seconds = divmod(round(row.seconds), 60)
        counts = row.counts
        numbers = (counts.passed, counts.failed, counts.skipped, counts.again)
        cells = [row.name, *(row.versions.get(name) or "-" for name in VERSIONS)]
        cells += [*map(str, numbers), f"{minutes}:{seconds:02}", "good" if row.good else "FAILED"]
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def say(text: str) -> None:
    """One line of progress."""
    print(f"matrix: {text}", flush=True)


def _remove(path: Path) -> None:
    """Removes a file or a folder that may be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Runner:
    """Runs steps for one root, with all output in a log."""

    def __init__(self, name: str, log: str) -> None:
        self.suite = ROOTS[name].suite
        self.place = FOLDER / name
        self.log = FOLDER / f"{log}.log"
        self.log.write_text("")
        say(f"{log}: the log is {self.log.relative_to(TOP)}")

    def step(self, *command: str | Path) -> None:
        """Runs a command of the machine."""
        with open(self.log, "ab") as log:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
                cwd=TOP,
                timeout=TIME_LIMIT,
            )

    def inside(self, *command: str) -> None:
        """Runs a command in the root."""
        self.step(TOP / ".ci/root/enter", self.place, *command)

    def prepare(self) -> None:
        """Makes the root where it is missing, and puts a clean clone of HEAD into it."""
        self.step(TOP / ".ci/root/make", self.suite, self.place)
        source = self.place / "src"
        source.mkdir(exist_ok=True)
        for entry in source.iterdir():
            if entry.name not in KEPT:
                _remove(entry)
        (source / ".venv/native").unlink(missing_ok=True)
        new = self.place / "new"
        _remove(new)
        self.step("git", "clone", "--quiet", "--no-hardlinks", TOP, new)
        for entry in new.iterdir():
            entry.rename(source / entry.name)
        new.rmdir()

    def log_tail(self, lines: int = 30) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def version(self, command: str) -> str:
        """The first version number that a command prints in the root."""
        done = subprocess.run(
            [TOP / ".ci/root/enter", self.place, "sh", "-c", f"cd /src && {command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        found = re.search(r"\d+(\.\d+)+", done.stdout)
        return found[0] if found else ""


def make_products() -> None:
    """Makes the wheel and the sdist in the builder's root and fetches them."""
    shutil.rmtree(PRODUCTS, ignore_errors=True)
    runner = Runner(BUILDER, "products")
    runner.prepare()
    runner.inside("/src/.ci/root/suite", "wheel")
    shutil.copytree(runner.place / "src/dist", PRODUCTS)


def try_root(name: str, targets: Sequence[str]) -> Row:
    """Does one root; a failure is told in the row."""
    runner = Runner(name, name)
    what = ROOTS[name].what
    start = time.monotonic()
    good = True
    try:
        runner.prepare()
        if what == "suite":
            runner.inside("/src/.ci/root/suite", *targets)
        elif what == "user":
            runner.inside("/src/.ci/root/user", "demo", "test-c")
        else:
            shutil.rmtree(runner.place / "dist", ignore_errors=True)
            shutil.copytree(PRODUCTS, runner.place / "dist")
            runner.inside("/src/.ci/root/package", what)
    except (subprocess.SubprocessError, OSError) as error:
        say(f"{name}: {error}")
        print(runner.log_tail(), file=sys.stderr)
        good = False
    seconds = time.monotonic() - start
    versions = {key: runner.version(command) for key, command in VERSIONS.items()}
    return Row(name, good, seconds, count(runner.log.read_text(errors="replace")), versions)


def try_all(names: Sequence[str], targets: Sequence[str]) -> list[Row]:
    """Does the roots in turn, the suites first."""
    if any(ROOTS[name].what in ("wheel", "sdist") for name in names):
        try:
            make_products()
        except (subprocess.SubprocessError, OSError) as error:
            say(f"products: {error}")  # the roots that need them will fail
    return [try_root(name, targets) for name in names]


def run(names: Sequence[str], targets: Sequence[str]) -> int:
    """Does the roots, keeps and prints the table; the exit code."""
    rows = try_all(names, targets)
    text = table(rows)
    (FOLDER / "table.md").write_text(text)
    print(text, end="")
    return 0 if all(row.good for row in rows) else 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog=".ci/matrix", description=__doc__)
    parser.add_argument("root", nargs="*", help=f"of: {' '.join(ROOTS)}; all when none is named")
    parser.add_argument("--check", action="store_true", help="run `make check` in the suites too")
    options = parser.parse_args()
    unknown = set(options.root) - set(ROOTS)
    if unknown:
        parser.error(f"unknown root: {' '.join(sorted(unknown))}; there are: {' '.join(ROOTS)}")
    # A step is ended with this program, and with it all that runs in its root.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another one is at work in build/matrix")
            return 1
        targets = [*(["check"] if options.check else []), "test", "install-check"]
        return run(options.root or list(ROOTS), targets)


if __name__ == "__main__":
    sys.exit(main())
