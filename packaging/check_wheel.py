"""Looks into a wheel that is ready to be given away.

    python packaging/check_wheel.py WHEEL

Its tag, what is inside, what each library needs and exports, the stable ABI, the metadata and the
licences. Prints the files with their sizes; ends with 1 when something is wrong.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAG = re.compile(
    r"cwist_jq-(?P<version>[\d.]+)-(cp39-abi3|cp3\d\d-cp3\d\dt)-"
    r"(manylinux_\d+_\d+|musllinux_\d+_\d+|macosx_\d+_\d+|win)_\w+\.whl"
)
# What C programs need, and Python's view of it.
ALWAYS = (
    "cwist_jq/__init__.py",
    "cwist_jq/py.typed",
    "cwist_jq/include/cwist/sys/job/durable_queue.h",
    "cwist_jq/include/cwist/sys/job/durable_queue_ext.h",
    "cwist_jq/lib/pkgconfig/cwist-jq.pc",
    "cwist_jq/lib/cmake/cwist_jq/cwist_jq-config.cmake",
)
LINUX = ("cwist_jq/lib/libcwist_jq.so", "cwist_jq/lib/libcwist_jq.so.0")
# What every Linux has; the rest must come with the wheel. zlib is among it by the policies of
# manylinux and musllinux, so auditwheel leaves it out.
SYSTEM = re.compile(
    r"(linux-vdso|ld-linux[\w-]*|ld-musl-\w+|lib(c|m|dl|rt|pthread|z)(\.musl-\w+)?)\.so"
)
# The interpreter brings these along.
PYTHON_SYMBOL = re.compile(r"\b_?Py_?[A-Z]\w+")
# Where readelf says that a library looks for others.
RUN_PATH = re.compile(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]")
# What ldd of glibc, and that of musl, says of a symbol that nobody defines.
NO_SYMBOL = re.compile(r"undefined symbol|symbol lookup error|symbol not found")


def problems(wheel: Path, tree: Path) -> Iterator[str]:
    """What is wrong with a wheel, unpacked in tree; one line each."""
    if not TAG.fullmatch(wheel.name):
        yield f"the tag of {wheel.name} is not that of one system and the stable ABI"
    for name in (*ALWAYS, *(LINUX if sys.platform == "linux" else ())):
        if not (tree / name).is_file():
            yield f"{name} is not inside"
    yield from license_problems(tree)
    yield from place_problems(tree)
    if sys.platform == "linux":
        yield from library_problems(tree)
    if "-abi3-" in wheel.name:
        yield from said(sys.executable, "-m", "abi3audit", "--strict", "--summary", str(wheel))
    yield from said(sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(wheel))
    yield from import_problems(tree)


def said(*command: str, **environment: str) -> Iterator[str]:
    """What a program that failed had to say."""
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        yield f"{' '.join(command[:4])}: {done.stdout.strip()} {done.stderr.strip()}"


def license_problems(tree: Path) -> Iterator[str]:
    """Licence files and their list must agree, and there must be more than ours."""
    (information,) = tree.glob("*.dist-info")
    metadata = Parser().parsestr((information / "METADATA").read_text("utf-8"))
    named = set(metadata.get_all("License-File", []))
    folder = information / "licenses"
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(named ^ there):
        yield f"the licence {name} is {'named but not inside' if name in named else 'not named'}"
    if any(tree.glob("*.libs/*")) and not any(name.startswith("bundled/") for name in there):
        yield "no licence of a bundled library is inside"


def place_problems(tree: Path) -> Iterator[str]:
    """No file of ours names the place of the build; no library is looked for outside the wheel."""
    places = [f"{place}{os.sep}".encode() for place in (ROOT, tempfile.gettempdir())]
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        content = path.read_bytes()
        named = [place.decode() for place in places if place in content]
        if named and path.is_relative_to(tree / "cwist_jq"):
            yield f"{path.relative_to(tree)} names {named[0]}"
        if content[:4] == b"\x7fELF":
            command = ["readelf", "-d", str(path)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            folders = ":".join(RUN_PATH.findall(said)).split(":")
            for folder in folders:
                if folder and not folder.startswith("$ORIGIN"):
                    yield f"{path.relative_to(tree)} searches {folder}"


def library_problems(tree: Path) -> Iterator[str]:
    """Every needed library is inside or part of every Linux; no symbol is missing or too many."""
    objects = [path for path in tree.rglob("*.so*") if path.read_bytes()[:4] == b"\x7fELF"]
    for path in objects:
        done = subprocess.run(["ldd", "-r", path], capture_output=True, text=True, check=False)
        for line in f"{done.stdout}{done.stderr}".splitlines():
            needed, _, found = line.strip().partition(" => ")
            if NO_SYMBOL.search(line):
                if not (path.name.startswith("_native") and PYTHON_SYMBOL.search(line)):
                    yield f"{path.relative_to(tree)}: {line.strip()}"
            elif "not found" in line:
                yield f"{path.relative_to(tree)}: {line.strip()}"
            elif found and not found.startswith(str(tree)) and not SYSTEM.match(needed):
                yield f"{path.relative_to(tree)} takes {needed} from the system"
    check = str(ROOT / "csrc/tools/check_exports.py")
    yield from said(sys.executable, check, str(tree / LINUX[1]))
    (extension,) = (tree / "cwist_jq").glob("_native*.so")
    names = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", extension],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if [line.split()[0] for line in names.splitlines()] != ["PyInit__native"]:
        yield f"{extension.name} exports more than PyInit__native"


def import_problems(tree: Path) -> Iterator[str]:
    """All symbols are looked up at once, with no library path set."""
    if importlib.util.find_spec("cffi") is None:
        yield "cffi is missing, so that the import could not be tried"
        return
    program = f"import sys; sys.path.insert(0, {str(tree)!r}); import cwist_jq"
    yield from said(sys.executable, "-c", program, LD_BIND_NOW="1", LD_LIBRARY_PATH="")


def main() -> int:
    """Checks one wheel; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as temp, zipfile.ZipFile(wheel) as archive:
        archive.extractall(temp)
        found = list(problems(wheel, Path(temp).resolve()))
        files = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in files:
        print(f"{entry.file_size:>10}  {entry.filename}")
    total = sum(entry.file_size for entry in files)
    print(f"{total:>10}  in {len(files)} files; {wheel.stat().st_size} bytes: {wheel.name}")
    for line in found:
        print(f"check_wheel: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
