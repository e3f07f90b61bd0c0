"""Runs a full life cycle on private servers with the package of the Python that runs this.

The package must be installed there, not built in the tree. Works with every Python that the package
supports; the servers need Python 3.11 or newer, which CWIST_TEST_PYTHON or the PATH names.

    python .ci/test-wheel.py [redis[=KIND]] [nats[=KIND]]

Without arguments: both engines, on the servers that .ci/wheel-servers gets; on Windows NATS alone,
because no Redis server is made for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REDIS = ["redis=distribution"] if sys.platform != "win32" else []
ENGINES = [*REDIS, "nats=2.15.1"]
INSIDE = "--servers-run"
NAMES = ["python3.14", "python3.13", "python3.12", "python3.11"]


def newer_python() -> str:
    """The Python that starts the servers."""
    named = os.environ.get("CWIST_TEST_PYTHON") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if named is None:
        sys.exit("test_wheel: no Python 3.11 or newer; name one in CWIST_TEST_PYTHON")
    return named


def with_servers(engines: list[str]) -> list[str]:
    """The command that starts the servers and, inside, this program again."""
    servers = [newer_python(), "-m", "tests.servers", "run", *engines, "--"]
    return [*servers, sys.executable, __file__, INSIDE, *engines]


def life_cycle(engines: list[str]) -> list[str]:
    """The command that goes through the life cycle on the servers that run."""
    names = [engine.partition("=")[0] for engine in engines]
    urls = [os.environ[f"CWIST_TEST_{name.upper()}_URL"] for name in names]
    program = str(ROOT / "tests" / "packaging" / "lifecycle.py")
    return [sys.executable, program, "--engines", ",".join(names), *urls]


def main() -> int:
    """Runs it; the exit code of the life cycle."""
    arguments = sys.argv[1:]
    if arguments[:1] == [INSIDE]:
        command = life_cycle(arguments[1:])
    else:
        command = with_servers(arguments or ENGINES)
    # What would let the package find libraries elsewhere must not reach it.
    hidden = {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["CWIST_TEST_REQUIRE_DURABLE_QUEUE"] = "1"
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
