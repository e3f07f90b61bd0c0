"""Builds libcwist_jq as a shared library inside the package, with what C programs need of it."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import needs
from .target import PLATFORMS, export_args, library_linker, target

Macros = list[tuple[str, "str | None"]]

SOURCES = Path("csrc")
HEADERS = Path("include")
# The folders of the package that are made here; setup.py and .gitignore know no other.
FOLDERS = ("include", "lib")


def version() -> str:
    """Reads the version from the C header, the one place where it is written."""
    text = (HEADERS / "cwist/version.h").read_text("utf-8")
    return ".".join(re.findall(r"define CWIST_JQ_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def _names_in(path: Path) -> list[str]:
    """The lines of a list file, without comments."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def _sources(parts: list[str]) -> list[str]:
    """The library's sources, less those of engines and systems that are not built for."""
    unwanted = [f"{engine}/" for engine in needs.ENGINES if engine not in parts]
    unwanted += [f"platform/{name}/" for name in PLATFORMS if name != target().platform]
    names = _names_in(SOURCES / "sources.txt")
    return [str(SOURCES / name) for name in names if not name.startswith(tuple(unwanted))]


def platform_macros() -> Macros:
    """Macros for everything that includes a private header."""
    return [] if sys.platform == "win32" else [("_POSIX_C_SOURCE", "200809L")]


def shared_sources() -> list[str]:
    """The sources that the extension has a copy of: the library does not export locks."""
    return [str(SOURCES / f"platform/{target().platform}/thread.c")]


def _embed_scripts(folder: Path) -> str:
    """Embeds the Lua scripts; the source that holds them."""
    scripts = sorted(str(path) for path in (SOURCES / "redis/lua").glob("*.lua"))
    command = [sys.executable, str(SOURCES / "tools/embed_lua.py"), str(folder), *scripts]
    subprocess.run(command, check=True)
    return str(folder / "redis_scripts.gen.c")


def build(compiler: Any, package: Path, temp: Path) -> Path:
    """Builds the library into the package; what the extension is linked with.

    Args:
        compiler: The compiler object of setuptools.
        package: The folder of the package, in the tree or in a build folder.
        temp: Where objects and generated sources go.
    """
    parts = needs.parts()
    flags = needs.library_flags(parts)
    generated = temp / "generated"
    generated.mkdir(parents=True, exist_ok=True)
    sources = _sources(parts)
    if "redis" in parts:
        sources.append(_embed_scripts(generated))
    macros = [
        ("CWIST_JQ_BUILDING", None),
        *platform_macros(),
        *((f"CWIST_JQ_WITH_{part.upper()}", "1") for part in parts),
        *flags.define_macros,
    ]
    include_dirs = [str(HEADERS), str(SOURCES), str(generated), *flags.include_dirs]
    compile_args = [*target().compile_args, *flags.compile_args]
    objects = _compile(compiler, sources, temp, macros, include_dirs, compile_args)
    clear(package)
    _link(compiler, objects, package, generated, flags)
    return package / target().link_with


def _compile(  # noqa: PLR0913, PLR0917 (what a compiler takes)
    compiler: Any,
    sources: list[str],
    temp: Path,
    macros: Macros,
    include_dirs: list[str],
    compile_args: list[str],
) -> list[str]:
    """Compiles the sources, as many at once as there are processors; the objects."""

    def compile_one(source: str) -> list[str]:
        return compiler.compile(  # type: ignore[no-any-return]
            [source],
            output_dir=str(temp / "library"),
            macros=macros,
            include_dirs=include_dirs,
            extra_postargs=compile_args,
        )

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [name for names in pool.map(compile_one, sources) for name in names]


def _link(
    compiler: Any, objects: list[str], package: Path, generated: Path, flags: needs.Flags
) -> None:
    output = package / target().library
    output.parent.mkdir(parents=True, exist_ok=True)
    (package / target().link_with).parent.mkdir(parents=True, exist_ok=True)
    exports = export_args(_names_in(SOURCES / "exports.txt"), generated)
    if sys.platform == "win32":
        exports.append(f"/IMPLIB:{package / target().link_with}")
    linker = getattr(compiler, "linker_so", None)
    if linker is not None:
        compiler.linker_so = library_linker(linker)
    try:
        compiler.link(
            compiler.SHARED_LIBRARY,
            objects,
            str(output),
            libraries=[*flags.libraries, *target().libraries],
            library_dirs=flags.library_dirs,
            extra_postargs=[*target().library_link_args, *exports, *flags.link_args],
        )
    finally:
        if linker is not None:
            compiler.linker_so = linker


# ---- for C programs ----


def clear(package: Path) -> None:
    """Removes what an earlier build left in the package."""
    for folder in FOLDERS:
        shutil.rmtree(package / folder, ignore_errors=True)


def add_development_files(package: Path) -> None:
    """Puts the headers into the package, and what pkg-config, CMake and linkers read."""
    shutil.copytree(HEADERS, package / "include")
    lib = package / "lib"
    values = {
        "CWIST_JQ_VERSION": version(),
        "CWIST_JQ_LIB_TO_INCLUDE": "../include",
        "CWIST_JQ_SHARED_FILE": os.path.relpath(target().library, "lib").replace(os.sep, "/"),
        "CWIST_JQ_IMPLIB_FILE": Path(target().link_with).name if sys.platform == "win32" else "",
        "CWIST_JQ_STATIC_FILE": "",
        "CWIST_JQ_REQUIRES": "",  # what the library needs is beside it, and not for pkg-config
    }
    _fill(SOURCES / "cwist-jq.pc.in", lib / "pkgconfig", values)
    _fill(SOURCES / "cwist_jq-config.cmake.in", lib / "cmake/cwist_jq", values)
    _fill(SOURCES / "cwist_jq-config-version.cmake.in", lib / "cmake/cwist_jq", values)
    if sys.platform not in {"win32", "darwin"}:
        # A wheel cannot hold a symbolic link, and abi3audit takes a linker script for a broken
        # library. A program that is linked to the copy still loads the other: it has its SONAME.
        shutil.copy2(package / target().library, lib / "libcwist_jq.so")


def _fill(template: Path, folder: Path, values: dict[str, str]) -> None:
    """Fills a template of CMake's configure_file(@ONLY)."""
    text = re.sub(r"@(\w+)@", lambda match: values[match[1]], template.read_text("utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / template.stem).write_text(text, encoding="utf-8")
