"""Runs the C tests of a build folder beside private servers.

    python -m tests.run_c build/c [--servers all] [--label REGEX] [--jobs N] [--again] …

With CWIST_TEST_REQUIRE_DURABLE_QUEUE set, a skipped C test is a failure. With --again a test that
failed is named and run once more, alone, because a busy machine breaks time limits; what fails
twice fails the run, and so does a crash at once. What watches the tests (a sanitizer, valgrind) is
always right the first time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from . import servers

#: What ctest lists at the end, and why.
_FAILED = re.compile(r"^\s+\d+ - (\S+) \(([^)]+)\)", re.MULTILINE)
#: The harness says so of a part of a test; 14 is the alarm that ends one which hangs.
_CRASHED = re.compile(r"ended by signal (?!14\b)")


def _choices(which: str, without: str | None) -> list[list[str]]:
    """The server words of each round: the pinned pair, then further ones while a server is new."""
    rounds: list[list[str]] = []
    seen: set[str] = set()
    for number in range(1 if which == "pinned" else max(map(len, servers.KINDS.values()))):
        words = []
        for engine, kinds in servers.KINDS.items():
            if engine == without:
                continue
            kind = kinds[min(number, len(kinds) - 1)]
            if servers.known_absent(engine, kind):
                kind = servers.pinned(engine)
            words.append(f"{engine}={kind}")
        if not seen.issuperset(words):
            rounds.append([*words, *servers.TLS_SCHEMES.values()])
            seen.update(words)
    return rounds


def _skipped(results: Path) -> list[str]:
    if not results.exists():
        return []
    cases = ET.parse(results).getroot().iter("testcase")
    return [case.get("name", "?") for case in cases if case.find("skipped") is not None]


def _ctest(
    words: list[str], options: argparse.Namespace, left_out: list[str], *more: str
) -> tuple[int, str, list[str]]:
    """Runs ctest beside servers; its exit code, all that it printed, and what was skipped."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "tests.servers", "run", *words, "--"]
        command += ["ctest", "--test-dir", options.build, "--output-on-failure"]
        command += ["--no-tests=error", "--output-junit", str(results), "--timeout", "300", *more]
        if options.label:
            command += ["--label-regex", options.label]
        if left_out:
            command += ["--label-exclude", f"^({'|'.join(left_out)})$"]
        lines = []
        with subprocess.Popen(
            command, cwd=servers.ROOT, stdout=subprocess.PIPE, text=True, errors="replace"
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        return running.returncode, "".join(lines), _skipped(results)


def _worth_another(output: str) -> list[str]:
    """The tests that failed, when the load of the machine may be the cause of all failures."""
    _, _, end = output.partition("The following tests FAILED:\n")
    failed = _FAILED.findall(end.partition("\n\n")[0])
    if _CRASHED.search(output) or any(why not in ("Failed", "Timeout") for _, why in failed):
        return []
    return [name for name, _ in failed]


def _again(
    words: list[str], options: argparse.Namespace, left_out: list[str], failed: list[str]
) -> bool:
    print(f"c tests: RUN AGAIN, ALONE: {len(failed)} that failed: {' '.join(failed)}", flush=True)
    code, output, skipped = _ctest(words, options, left_out, "--rerun-failed")
    still = {name for name, _ in _FAILED.findall(output)}
    for name in failed:
        print(f"c tests: {'FAILED TWICE' if name in still else 'PASSED ONLY ALONE'}: {name}")
    return code == 0 and not skipped


def _round(words: list[str], options: argparse.Namespace, left_out: list[str]) -> bool:
    print(f"c tests: {options.build} on {' '.join(words)}", flush=True)
    code, output, skipped = _ctest(words, options, left_out, "--parallel", str(options.jobs))
    if skipped and servers.strict():
        print(f"c tests: skipped, and {servers.STRICT_VARIABLE} is set: {' '.join(skipped)}")
        return False
    failed = _worth_another(output) if options.again and code != 0 else []
    return _again(words, options, left_out, failed) if failed else code == 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.run_c", description=__doc__)
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--servers", choices=("pinned", "all"), default="pinned")
    parser.add_argument("--label", help="run only the tests with this label")
    parser.add_argument("--jobs", type=int, default=1, help="how many tests at once")
    parser.add_argument("--without", choices=servers.KINDS, help="leave the tests of an engine out")
    parser.add_argument("--again", action="store_true", help="run once more, alone, what failed")
    options = parser.parse_args()
    without = [options.without, servers.TLS_SCHEMES[options.without]] if options.without else []
    good = True
    for number, words in enumerate(_choices(options.servers, options.without)):
        # Other servers are nothing to tests that use none.
        left_out = without + (["memory", "unit"] if number else [])
        good = _round(words, options, left_out) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
