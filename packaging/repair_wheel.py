"""Makes a wheel that was just built run on other machines.

    python packaging/repair_wheel.py WHEEL FOLDER

The repair tool of the system (auditwheel, delocate or delvewheel) copies the libraries that ours
needs into the wheel, under names of their own. Then the licence of each is put beside ours. The
result is written to the folder.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MODULES = ("hiredis", "libnats", "openssl")
PKG_CONFIG = os.environ.get("PKG_CONFIG") or "pkg-config"
COMMON_LICENSES = re.compile(r"/usr/share/common-licenses/([\w.+-]*\w)")

# The repair tools put a part of a digest into the name: libnats-2489369a.so.3.4.1.
DIGEST = re.compile(r"-[0-9a-f]{8,}(?=\.)")


class RepairError(Exception):
    """The wheel cannot be repaired; the text says why in one line."""


def run(*command: str, **environment: str) -> str:
    """Runs a program of the repair; what it prints."""
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RepairError(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def library_folders() -> list[Path]:
    """Where the libraries are that the wheel was linked to."""
    found = []
    for module in MODULES:
        command = [PKG_CONFIG, "--variable=libdir", module]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            found.append(Path(done.stdout.strip()).resolve())  # vcpkg's has dots in it
    return list(dict.fromkeys(found))


def tool(system: str, wheel: Path, folders: list[Path]) -> list[str]:
    """The repair tool of a system (a sys.platform), less the folder for the result."""
    if system == "win32":
        # Ours keeps its name, for C programs; what it needs gets a name of its own.
        places = os.pathsep.join(str(path.parent / "bin") for path in folders)
        options = ["--ignore-existing", "--with-mangle", "--add-path", places]
        return [sys.executable, "-m", "delvewheel", "repair", *options, str(wheel)]
    if system == "darwin":
        # It refuses libraries for a newer macOS than MACOSX_DEPLOYMENT_TARGET by itself.
        match = re.search(r"-macosx_\d+_\d+_(\w+)$", wheel.stem)
        if match is None:
            raise RepairError(f"{wheel.name} is not for macOS")
        return ["delocate-wheel", "--require-archs", match[1], str(wheel)]
    return [sys.executable, "-m", "auditwheel", "repair", str(wheel)]


def repair(wheel: Path, folder: Path) -> Path:
    """Runs the repair tool; the new wheel."""
    folders = library_folders()
    search = [*map(str, folders), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    beside_python = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run(
        *tool(sys.platform, wheel, folders),
        "-w",
        str(folder),
        PATH=beside_python,
        LD_LIBRARY_PATH=":".join(search),
    )
    (repaired,) = folder.glob("*.whl")
    return repaired


# ---- licences ----


def bundled(tree: Path) -> list[str]:
    """The file names of the bundled libraries, as they were before the repair tool renamed them."""
    folders = [*tree.glob("*.libs"), *tree.glob("*/.dylibs")]
    files = (path for folder in folders for path in folder.iterdir())
    return sorted(DIGEST.sub("", path.name) for path in files if path.name[0] != ".")


def license_of(library: str) -> tuple[str, Path]:
    """The package that a library comes from and the file with its licence."""
    for name, path in (*from_vcpkg(library), *from_dpkg(library)):
        if path.is_file():
            return name, path
    raise RepairError(f"no package with a licence holds {library}; neither vcpkg's nor Debian's")


def from_vcpkg(library: str) -> Iterator[tuple[str, Path]]:
    """Looks in an installed tree of vcpkg, whose lists say what belongs to which port."""
    for folder in library_folders():
        root, triplet = folder.parents[1], folder.parent.name
        for listing in sorted((root / "vcpkg/info").glob(f"*_{triplet}.list")):
            files = listing.read_text("utf-8").splitlines()
            if any(Path(name).name == library for name in files):
                port = listing.name.partition("_")[0]
                yield port, root / triplet / "share" / port / "copyright"


def from_dpkg(library: str) -> Iterator[tuple[str, Path]]:
    """Asks Debian's package manager."""
    if shutil.which("dpkg-query") is None:
        return
    command = ["dpkg-query", "--search", f"*/{library}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        name = line.partition(":")[0]
        yield name, Path("/usr/share/doc", name, "copyright")


def add_licenses(tree: Path) -> None:
    """Puts the licences of the bundled libraries into an unpacked wheel and names them in it."""
    (information,) = tree.glob("*.dist-info")
    added: dict[str, Path] = {}
    for library in bundled(tree):
        name, path = license_of(library)
        added[f"bundled/{name}/copyright"] = path
        # Debian's files point to texts that other systems do not have.
        for common in COMMON_LICENSES.findall(path.read_text("utf-8", "replace")):
            found = Path("/usr/share/common-licenses", common)
            if found.is_file():
                added[f"bundled/common-licenses/{common}"] = found
    for name, path in added.items():
        target = information / "licenses" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    metadata = information / "METADATA"
    head, gap, body = metadata.read_text("utf-8").partition("\n\n")
    lines = [f"License-File: {name}" for name in sorted(added)]
    metadata.write_text("\n".join([head, *lines]) + gap + body, encoding="utf-8")


def main() -> int:
    """Repairs one wheel; 1 and one line when that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as temp:
            repaired = repair(chosen.wheel, Path(temp, "repaired"))
            wheel_tool = [sys.executable, "-m", "wheel"]
            run(*wheel_tool, "unpack", "--dest", f"{temp}/unpacked", str(repaired))
            (tree,) = Path(temp, "unpacked").iterdir()
            add_licenses(tree)
            chosen.folder.mkdir(parents=True, exist_ok=True)
            run(*wheel_tool, "pack", "--dest-dir", str(chosen.folder), str(tree))
    except RepairError as error:
        print(f"repair_wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
