"""Compares what a shared library exports with exports.txt, both ways.

python3 csrc/tools/check_exports.py build/c/libcwist_jq.so
"""

import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "exports.txt"


def promised():
    """The names in exports.txt."""
    lines = (line.partition("#")[0].strip() for line in LIST.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def exported(library):
    """The names that the library defines for others."""
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", library]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this is nm
    return {line.split()[0].partition("@")[0] for line in done.stdout.splitlines()}


def main(arguments):
    """Returns 0 when both lists are the same."""
    if len(arguments) != 1:
        sys.exit(__doc__)
    names = promised()
    found = exported(arguments[0])
    problems = [f"promised but not exported: {name}" for name in names if name not in found]
    problems += [f"exported but not in exports.txt: {name}" for name in sorted(found - set(names))]
    if names != sorted(set(names)):
        problems.append("exports.txt is not sorted, or names something twice")
    for problem in problems:
        print(f"exports: {problem}", file=sys.stderr)
    if not problems:
        print(f"exports: {len(names)} names, as listed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
