"""What differs between systems in how a shared library is named, linked and found.

Only Linux is built and run by the tests; the branches for macOS and Windows are run by the wheel
workflow.
"""

import sys
from pathlib import Path
from typing import NamedTuple

ABI = "0"  # the SONAME's number, as in csrc/CMakeLists.txt
PLATFORMS = ("unix", "win")  # the folders of csrc/platform


class Target(NamedTuple):
    """One system; the paths are relative to the package."""

    platform: str  # one of PLATFORMS
    library: str  # what the loader opens
    link_with: str  # what a linker is given
    compile_args: list[str]
    libraries: list[str]  # of the system
    library_link_args: list[str]
    extension_link_args: list[str]


def target() -> Target:
    """The system that this Python runs on."""
    if sys.platform == "win32":
        return _windows()
    if sys.platform == "darwin":
        return _macos()
    return _elf()


_UNIX_COMPILE = ["-std=c11", "-fvisibility=hidden", "-pthread"]


def _elf() -> Target:
    name = f"libcwist_jq.so.{ABI}"
    # Every symbol must be there, and is looked up when the library is loaded: a missing one is
    # told at once and not in the middle of a job.
    strict = ["-Wl,--no-undefined", "-Wl,-z,now", "-Wl,-z,relro"]
    # It calls its own functions, whatever other copy of it the process has loaded.
    own = "-Wl,-Bsymbolic"
    return Target(
        platform="unix",
        library=f"lib/{name}",
        link_with=f"lib/{name}",
        compile_args=_UNIX_COMPILE,
        libraries=[],
        library_link_args=["-pthread", f"-Wl,-soname,{name}", own, *strict],
        # RPATH and not RUNPATH: LD_LIBRARY_PATH must not put another library in its place.
        extension_link_args=[
            "-pthread",
            "-Wl,-rpath,$ORIGIN/lib",
            "-Wl,--disable-new-dtags",
            "-Wl,-z,now",
        ],
    )


def _macos() -> Target:
    name = "libcwist_jq.dylib"
    return Target(
        platform="unix",
        library=f"lib/{name}",
        link_with=f"lib/{name}",
        compile_args=_UNIX_COMPILE,
        libraries=[],
        library_link_args=["-pthread", f"-Wl,-install_name,@rpath/{name}"],
        extension_link_args=["-pthread", "-Wl,-rpath,@loader_path/lib"],
    )


def _windows() -> Target:
    # Windows has no RPATH: the DLL lies beside the extension, where the loader looks first.
    return Target(
        platform="win",
        library="cwist_jq.dll",
        link_with="lib/cwist_jq.lib",
        compile_args=["/std:c11", "/experimental:c11atomics"],
        libraries=["ws2_32"],
        library_link_args=[],
        extension_link_args=[],
    )


def export_args(names: list[str], folder: Path) -> list[str]:
    """Link arguments that export these names and no others."""
    if sys.platform == "win32":  # CWIST_API says it to the compiler
        return []
    if sys.platform == "darwin":
        path = folder / "exports.txt"
        path.write_text("".join(f"_{name}\n" for name in names), encoding="ascii")
        return [f"-Wl,-exported_symbols_list,{path}"]
    path = folder / "exports.map"
    path.write_text("{ global: " + "; ".join(names) + "; local: *; };\n", encoding="ascii")
    return [f"-Wl,--version-script={path}"]


def library_linker(command: list[str]) -> list[str]:
    """Turns the command that links extensions into one that links libraries.

    On macOS these are two kinds of file, and Python links extensions with symbols left open.
    """
    if sys.platform == "darwin":
        bundle = {"-bundle", "-undefined", "dynamic_lookup"}
        return [*(word for word in command if word not in bundle), "-dynamiclib"]
    return command
