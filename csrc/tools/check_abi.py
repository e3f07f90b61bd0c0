"""Compares a built library with the ABI that programs were compiled against.

csrc/abi/libcwist_jq.abi holds the functions and the types that they take, read by abidw from the
debug information; csrc/abi/constants.txt the numbers of the public enums, which a program copies
when it is compiled. What was added is fine. What was removed or changed is not.

    python3 csrc/tools/check_abi.py LIBRARY          compares
    python3 csrc/tools/check_abi.py --renew LIBRARY  writes both files anew
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gen_cdef

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include"
BASELINE = ROOT / "csrc" / "abi" / "libcwist_jq.abi"
CONSTANTS = ROOT / "csrc" / "abi" / "constants.txt"
CONSTANTS_HEAD = "# The numbers of the public enums. Made by `make abi-baseline`.\n"

# Public types only, and nothing that depends on the place of the build.
READ = [
    *("--headers-dir", str(HEADERS), "--drop-private-types", "--exported-interfaces-only"),
    *("--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed"),
    "--drop-undefined-syms",
]
# A library of another machine has the same public types, so its name does not matter.
COMPARE = ["--no-added-syms", "--no-architecture", "--no-show-locs"]


def run(program, *arguments):
    """Runs a program of abigail-tools."""
    if shutil.which(program) is None:
        sys.exit(f"abi: {program} is missing: apt install abigail-tools, or dnf install libabigail")
    command = [program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def read_library(library):
    """The ABI of a library, as text that is the same wherever it was built."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "abi"
        done = run("abidw", *READ, "--out-file", output, library)
        if done.returncode != 0:
            sys.exit(f"abi: abidw cannot read {library}: {done.stderr.strip()}")
        text = output.read_text("utf-8")
    if "<class-decl name='cwist_job_queue_opts'" not in text:
        sys.exit(f"abi: {library} has no debug information; build it with -g")
    return re.sub(r" path='[^']*'", lambda found: f" path='{Path(found[0][7:-1]).name}'", text)


def constants():
    """The numbers of the public enums, by name."""
    found = {}
    for body in re.findall(r"enum \w*\s*\{(.*?)\}", gen_cdef.cdef(HEADERS), re.DOTALL):
        number = -1
        for member in filter(None, map(str.strip, body.split(","))):
            name, _, value = member.partition("=")
            number = int(value) if value else number + 1
            found[name.strip()] = number
    return found


def known_constants():
    """The numbers as they were published."""
    lines = CONSTANTS.read_text("utf-8").splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines if not line.startswith("#")}


def compare_constants():
    """Lines about numbers that are gone or changed."""
    now = constants()
    return [
        f"{name} was {number}, and is {now.get(name, 'gone')}"
        for name, number in known_constants().items()
        if now.get(name) != number
    ]


def compare(library):
    """Returns 0 when programs that use the published ABI go on working."""
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder) / "now.abi"
        now.write_text(read_library(library), encoding="utf-8")
        done = run("abidiff", *COMPARE, BASELINE, now)
    problems = compare_constants()
    if done.returncode != 0:
        problems.append((done.stdout + done.stderr).strip())
    for problem in problems:
        print(f"abi: {problem}", file=sys.stderr)
    if problems:
        print(
            "abi: programs that are in use would break; a wanted change raises abi_version in "
            "csrc/CMakeLists.txt, and `make abi-baseline`",
            file=sys.stderr,
        )
    else:
        print("abi: as published")
    return 1 if problems else 0


def renew(library):
    """Writes both files."""
    BASELINE.write_text(read_library(library), encoding="utf-8")
    lines = "".join(f"{name} {number}\n" for name, number in constants().items())
    CONSTANTS.write_text(CONSTANTS_HEAD + lines, encoding="utf-8")
    return 0


def main(arguments):
    """The command line."""
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        return compare(arguments[0])
    if len(arguments) == 2 and arguments[0] == "--renew":  # noqa: PLR2004 - the switch and the file
        return renew(arguments[1])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
