"""Builds the native part: the C library's own sources and the binding, in one extension module.

CWIST_JQ_WITHOUT=nats or CWIST_JQ_WITHOUT=redis leaves an engine out of the build.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

OLDEST_PYTHON = "cp39"
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
# Engine: its pkg-config module, the oldest version that works, the package that holds it on Debian.
ENGINES = {
    "redis": ("hiredis", "0.14", "libhiredis-dev"),
    "nats": ("libnats", "3.4", "libnats-dev"),
}


def version():
    """Reads the version from the C header, the one place where it is written."""
    text = Path("include/cwist/version.h").read_text("utf-8")
    return ".".join(re.findall(r"define CWIST_JQ_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def fail(text):
    """Ends the build with one line that says what is missing."""
    sys.exit(f"cwist_jq: {text}")


def engines():
    """The engines to build in."""
    left_out = os.environ.get("CWIST_JQ_WITHOUT", "").replace(",", " ").split()
    for name in left_out:
        if name not in ENGINES:
            fail(f"CWIST_JQ_WITHOUT is {name!r}; allowed: {' or '.join(ENGINES)}")
    wanted = [name for name in ENGINES if name not in left_out]
    if not wanted:
        fail("CWIST_JQ_WITHOUT leaves no engine to build")
    return wanted


def pkg_config(option, module):
    """Asks pkg-config; a list of words."""
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), option, module]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def require_tools(compiler):
    """Stops when a tool of the build is missing."""
    if shutil.which(compiler) is None:
        fail(f"the C compiler {compiler!r} is missing; install the package gcc")
    if shutil.which(os.environ.get("PKG_CONFIG", "pkg-config")) is None:
        fail("pkg-config is missing; install the package pkg-config")
    folders = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
    if not any(Path(folder, "Python.h").exists() for folder in folders):
        fail("Python.h is missing; install the package python3-dev")


def require_library(engine):
    """Stops when the client library of an engine is missing or too old."""
    module, oldest, package = ENGINES[engine]
    try:
        pkg_config(f"--atleast-version={oldest}", module)
    except subprocess.CalledProcessError:
        fail(
            f"{module} {oldest} or newer is missing; install the package {package}, "
            f"or set CWIST_JQ_WITHOUT={engine} to build without {engine}"
        )


def library_sources(wanted):
    """The C library's sources, less those of engines that are left out."""
    lines = Path("csrc/sources.txt").read_text("utf-8").splitlines()
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    unwanted = [f"{name}/" for name in ENGINES if name not in wanted]
    unwanted.append("platform/unix/" if os.name == "nt" else "platform/win/")
    return [f"csrc/{name}" for name in names if not name.startswith(tuple(unwanted))]


def generate_scripts(folder):
    """Embeds the Lua scripts; the source that holds them."""
    folder.mkdir(parents=True, exist_ok=True)
    scripts = sorted(str(path) for path in Path("csrc/redis/lua").glob("*.lua"))
    command = [sys.executable, "csrc/tools/embed_lua.py", str(folder), *scripts]
    subprocess.run(command, check=True)
    return str(folder / "redis_scripts.gen.c")


class BuildNative(build_ext):
    """Adds the C library to the extension when it is really built, not for metadata or an sdist."""

    def build_extensions(self):
        require_tools(self.compiler.compiler[0])
        wanted = engines()
        for engine in wanted:
            require_library(engine)
        # What is built depends on the environment too: CWIST_JQ_WITHOUT, flags, other libraries.
        self.force = True
        for extension in self.extensions:
            self.add_library(extension, wanted)
        super().build_extensions()

    def add_library(self, extension, wanted):
        """Completes one extension with sources, flags and libraries."""
        extension.sources += library_sources(wanted)
        headers = [*Path("csrc").rglob("*.h"), *Path("include").rglob("*.h")]
        extension.depends += [str(path) for path in sorted(headers)]
        extension.define_macros += [("CWIST_JQ_STATIC", None), ("_POSIX_C_SOURCE", "200809L")]
        extension.extra_compile_args += ["-std=c11", "-fvisibility=hidden", "-pthread"]
        extension.extra_link_args += ["-pthread"]
        for engine in wanted:
            module = ENGINES[engine][0]
            extension.define_macros.append((f"CWIST_JQ_WITH_{engine.upper()}", "1"))
            extension.extra_compile_args += pkg_config("--cflags", module)
            extension.extra_link_args += pkg_config("--libs", module)
        if "redis" in wanted:
            generated = Path(self.build_temp) / "generated"
            extension.sources.append(generate_scripts(generated))
            extension.include_dirs.append(str(generated))


class SourceDistribution(sdist):
    """Takes along every file that a build from source needs."""

    def make_distribution(self):
        for folder in ("include", "csrc", "cwist_jq"):
            files = (path for path in Path(folder).rglob("*") if path.is_file())
            self.filelist.extend(
                str(path) for path in sorted(files) if path.suffix not in {".pyc", ".so", ".o"}
            )
        super().make_distribution()


if FREE_THREADED and sys.version_info < (3, 14):
    fail("the free-threaded build of Python is supported from 3.14 on")

setup(
    version=version(),
    cffi_modules=["cwist_jq/_ffi_build.py:ffibuilder"],
    cmdclass={"build_ext": BuildNative, "sdist": SourceDistribution},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": OLDEST_PYTHON}},
)
