"""Where C programs find the library and the headers that lie in this package.

On the command line, for the Makefile of a C program:

    cc worker.c $(cwist-jq-config --cflags --libs) -o worker
    cmake -S . -B build -Dcwist_jq_DIR="$(cwist-jq-config --cmakedir)"
"""

from __future__ import annotations

import os
import sys

from cwist_jq._version import __version__
from cwist_jq.errors import Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["get_include", "get_library_dirs"]

# What means nothing to a shell, beside letters and digits.
_PLAIN = "@%+=:,./_-"

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _folder(*names: str) -> str:
    """A folder of the package that is there only when the library came with it."""
    path = os.path.join(_PACKAGE, *names)
    if not os.path.isdir(path):
        raise Unsupported(
            "this build of the package uses the libcwist_jq of the system: the headers come with "
            "that, see pkg-config --cflags --libs cwist-jq"
        )
    return path


def get_include() -> str:
    """The folder to search for <cwist/…> headers.

    Example:
        Extension("app", ["app.c"], include_dirs=[cwist_jq.get_include()],
                  library_dirs=cwist_jq.get_library_dirs(), libraries=["cwist_jq"])

    Raises:
        Unsupported: The package was built to use the libcwist_jq of the system.
    """
    return _folder("include")


def get_library_dirs() -> list[str]:
    """The folders to search for the library cwist_jq, when linking and when running.

    Raises:
        Unsupported: The package was built to use the libcwist_jq of the system.
    """
    return [_folder("lib")]


def _word(text: str) -> str:
    """A word of a command line, quoted as pkg-config does it."""
    if os.sep != "/":
        return f'"{text}"'
    return "".join(c if c.isalnum() or c in _PLAIN else f"\\{c}" for c in text)


def _cflags() -> str:
    return _word(f"-I{get_include()}")


def _libs() -> str:
    """The linker's words, with the path in the program, so that it runs where it was linked."""
    folders = get_library_dirs()
    words = [f"-L{folder}" for folder in folders]
    if sys.platform != "win32":
        words += [f"-Wl,-rpath,{folder}" for folder in folders]
    return " ".join([*map(_word, words), "-lcwist_jq"])


_ANSWERS = {
    "--cflags": ("flags for the C compiler", _cflags),
    "--libs": ("flags for the linker, with an rpath", _libs),
    "--cmakedir": (
        "the folder of the CMake package, for cwist_jq_DIR",
        lambda: _folder("lib", "cmake", "cwist_jq"),
    ),
    "--pkgconfigdir": (
        "the folder of cwist-jq.pc, for PKG_CONFIG_PATH",
        lambda: _folder("lib", "pkgconfig"),
    ),
    "--version": ("the version of the library", lambda: __version__),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The program cwist-jq-config: prints what is asked for, in that order, on one line.

    Returns:
        0, or 1 when this build of the package has no library of its own.
    """
    import argparse

    parser = argparse.ArgumentParser(
        prog="cwist-jq-config", description="Says how to build C programs with this package."
    )
    for option, (what, _) in _ANSWERS.items():
        parser.add_argument(
            option, help=what, dest="asked", action="append_const", const=option, default=[]
        )
    asked = parser.parse_args(arguments).asked
    if not asked:
        parser.error("say what to print: " + ", ".join(_ANSWERS))
    try:
        print(" ".join(_ANSWERS[option][1]() for option in asked))  # noqa: T201 (a program)
    except Unsupported as error:
        print(f"cwist-jq-config: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0
