"""Runs the C tests of a build folder beside private servers.

    python -m tests.run_c build/c [--servers all] [--label REGEX] [--jobs N] [--without ENGINE]

With CWIST_TEST_REQUIRE_DURABLE_QUEUE set, a skipped C test is a failure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from . import servers


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


def _round(words: list[str], options: argparse.Namespace) -> bool:
    print(f"c tests: {options.build} on {' '.join(words)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "tests.servers", "run", *words, "--"]
        command += ["ctest", "--test-dir", options.build, "--output-on-failure"]
        command += ["--no-tests=error", "--output-junit", str(results), "--timeout", "300"]
        command += ["--parallel", str(options.jobs)]
        if options.label:
            command += ["--label-regex", options.label]
        if options.without:
            encrypted = servers.TLS_SCHEMES[options.without]
            command += ["--label-exclude", f"^({options.without}|{encrypted})$"]
        code = subprocess.run(command, check=False, cwd=servers.ROOT).returncode
        skipped = _skipped(results)
    if skipped and servers.strict():
        print(f"c tests: skipped, and {servers.STRICT_VARIABLE} is set: {' '.join(skipped)}")
        return False
    return code == 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.run_c", description=__doc__)
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--servers", choices=("pinned", "all"), default="pinned")
    parser.add_argument("--label", help="run only the tests with this label")
    parser.add_argument("--jobs", type=int, default=1, help="how many tests at once")
    parser.add_argument("--without", choices=servers.KINDS, help="leave the tests of an engine out")
    options = parser.parse_args()
    good = True
    for words in _choices(options.servers, options.without):
        good = _round(words, options) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
