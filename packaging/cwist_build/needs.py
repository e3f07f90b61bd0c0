"""What a build needs from the system. What is missing ends the build with one line."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple, NoReturn

MANAGERS = ("apt install", "apk add", "dnf install", "brew install")


class Need(NamedTuple):
    """A line of csrc/needs.txt."""

    oldest: str  # "-" when any version will do
    packages: list[str]  # one for each of MANAGERS; "-" where there is none


def _table() -> dict[str, Need]:
    """csrc/needs.txt, which CMake reads too."""
    table = {}
    for line in Path("csrc/needs.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, oldest, *packages = (field.strip() for field in line.split("|"))
            table[name] = Need(oldest, packages)
    return table


# The parts of the library that can be left out, and the module that each needs.
PARTS = {"redis": "hiredis", "nats": "libnats", "tls": "openssl"}
ENGINES = ("redis", "nats")


def fail(text: str) -> NoReturn:
    """Ends the build with one line."""
    sys.exit(f"cwist_jq: {text}")


def fail_missing(name: str, said: str, otherwise: str = "") -> NoReturn:
    """Ends the build with one line that says what to install."""
    packages = zip(MANAGERS, _table()[name].packages)
    ways = [f"{manager} {package}" for manager, package in packages if package != "-"]
    fail(f"{said}: " + ", or ".join([*ways, otherwise] if otherwise else ways))


def parts() -> list[str]:
    """The parts to build in: all but those that CWIST_JQ_WITHOUT names."""
    left_out = os.environ.get("CWIST_JQ_WITHOUT", "").replace(",", " ").split()
    for name in left_out:
        if name not in PARTS:
            fail(f"CWIST_JQ_WITHOUT is {name!r}; allowed: {', '.join(PARTS)}")
    if all(engine in left_out for engine in ENGINES):
        fail("CWIST_JQ_WITHOUT leaves no engine to build")
    return [name for name in PARTS if name not in left_out]


def from_system() -> bool:
    """Whether the extension is linked to a libcwist_jq that is installed already."""
    value = os.environ.get("CWIST_JQ_SYSTEM", "")
    if value not in {"", "0", "1"}:
        fail(f"CWIST_JQ_SYSTEM is {value!r}; allowed: 0 or 1")
    return value == "1"


# ---- tools ----


def require_compiler(command: list[str]) -> None:
    """Stops unless the C compiler is there and finds the headers of C."""
    if shutil.which(command[0]) is None:
        said = f"the C compiler {command[0]} is missing"
        fail_missing("c-compiler", said, "set CC to the one to use")
    probe = [*command, "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(
        probe, input="#include <stdio.h>\n", capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        why = (done.stderr.strip() or "it fails").splitlines()[0]
        fail_missing("c-compiler", f"the C compiler {command[0]} does not work ({why})")


def require_python_headers() -> None:
    """Stops when this Python's headers are missing."""
    folders = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
    if not any(Path(folder, "Python.h").exists() for folder in folders):
        fail_missing("python3-dev", "Python.h is missing")


def explain_old_setuptools(version: str) -> None:
    """Stops when setuptools is older than pyproject.toml asks for, as without build isolation."""
    text = Path("pyproject.toml").read_text("utf-8")
    (oldest,) = re.findall(r'"setuptools>=([\d.]+)"', text)
    if _numbers(version) < _numbers(oldest):
        fail(
            f"setuptools {version} is too old, {oldest} or newer is needed: "
            f"pip install 'setuptools>={oldest}', or build without --no-build-isolation"
        )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def require_cffi() -> None:
    """Stops without cffi, as without build isolation; setuptools would build no extension then."""
    if importlib.util.find_spec("cffi") is None:
        fail_missing("cffi", "cffi is missing", "pip install cffi")


def require_free_threading(version: tuple[int, ...], *, free_threaded: bool) -> None:
    """Stops on a free-threaded Python that cffi does not support."""
    if free_threaded and version < (3, 14):
        fail("the free-threaded build of Python is supported from 3.14 on; use the usual build")


# ---- libraries ----


class Flags(NamedTuple):
    """What compiling and linking with libraries takes."""

    include_dirs: list[str]
    define_macros: list[tuple[str, "str | None"]]
    compile_args: list[str]
    library_dirs: list[str]
    libraries: list[str]
    link_args: list[str]


def _pkg_config_command() -> str:
    return os.environ.get("PKG_CONFIG") or "pkg-config"


def _pkg_config(*arguments: str) -> "list[str] | None":
    """The words that pkg-config answers, None when it does not know the module."""
    command = [_pkg_config_command(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return shlex.split(done.stdout) if done.returncode == 0 else None


def require_pkg_config() -> None:
    """Stops when there is no pkg-config."""
    if shutil.which(_pkg_config_command()) is None:
        fail_missing("pkg-config", f"{_pkg_config_command()} is missing")


def _require_module(module: str, oldest: str, otherwise: str) -> None:
    if _pkg_config(f"--atleast-version={oldest}", module) is None:
        there = _pkg_config("--modversion", module)
        said = f"{module} {oldest} or newer is missing"
        if there:
            said = f"{module} {there[0]} is too old, {oldest} or newer is needed"
        fail_missing(module, said, otherwise)


def library_flags(names: list[str]) -> Flags:
    """The flags of the libraries that these parts need; stops when one is missing."""
    modules = [PARTS[name] for name in names]
    for name, module in zip(names, modules):
        _require_module(module, _table()[module].oldest, f"set CWIST_JQ_WITHOUT={name}")
    return _flags(modules)


def system_flags(version: str) -> Flags:
    """The flags of an installed libcwist_jq of this version; stops when it is another."""
    module = "cwist-jq"
    _require_module(module, version, "unset CWIST_JQ_SYSTEM to build the library, too")
    if _pkg_config(f"--exact-version={version}", module) is None:
        fail(f"the installed {module} is newer than this package, which is {version}")
    return _flags([module])


def _flags(modules: list[str]) -> Flags:
    """Sorts the words of pkg-config by what they mean, for compilers of other habits."""
    flags = Flags([], [], [], [], [], [])
    for word in _pkg_config("--cflags", *modules) or []:
        if word.startswith("-I"):
            flags.include_dirs.append(word[2:])
        elif match := re.fullmatch(r"-D(\w+)(?:=(.*))?", word):
            flags.define_macros.append((match[1], match[2]))
        else:
            flags.compile_args.append(word)
    for word in _pkg_config("--libs", *modules) or []:
        if word.startswith("-L"):
            flags.library_dirs.append(word[2:])
        elif word.startswith("-l"):
            flags.libraries.append(word[2:])
        else:
            flags.link_args.append(word)
    return flags
