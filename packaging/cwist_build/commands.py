"""The commands of setuptools that differ from the usual ones."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

from . import archive, library, needs
from .target import target

PACKAGE = Path("cwist_jq")


class BuildPackage(build_py):
    """Copies the modules, into a folder that holds nothing else."""

    def run(self) -> None:
        """Copies; what an earlier build left there would come along."""
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib) / PACKAGE, ignore_errors=True)
        super().run()

    def find_package_modules(self, package: str, package_dir: str) -> Any:
        """The modules of the package, without the one that is for the build alone."""
        found = super().find_package_modules(package, package_dir)  # type: ignore[no-untyped-call]
        return [module for module in found if module[1] != "_ffi_build"]


class BuildNative(build_ext):
    """Builds libcwist_jq into the package, and the extension that is linked to it."""

    def build_extensions(self) -> None:
        """Builds everything native; stops with one line when a piece is missing."""
        if self.compiler.compiler_type != "msvc":
            needs.require_compiler(self.compiler.compiler)
        needs.require_pkg_config()
        needs.require_python_headers()
        # What is built depends on the environment too: the switches, flags, other libraries.
        self.force = True
        package = Path(self.build_lib) / PACKAGE
        (extension,) = self.extensions
        if needs.from_system():
            library.clear(package)
            _link_to_system(extension)
        else:
            linked = library.build(self.compiler, package, Path(self.build_temp))
            library.add_development_files(package)
            extension.extra_objects.append(str(linked))
            extension.extra_link_args += target().extension_link_args
        extension.sources += library.shared_sources()
        extension.define_macros += library.platform_macros()
        extension.extra_compile_args += target().compile_args
        super().build_extensions()

    def copy_extensions_to_source(self) -> None:
        """Puts the library into the tree too, when that is where the package is used."""
        super().copy_extensions_to_source()
        library.clear(PACKAGE)
        built = Path(self.build_lib) / PACKAGE
        for folder in library.FOLDERS:
            if (built / folder).exists():
                shutil.copytree(built / folder, PACKAGE / folder)
        if sys.platform == "win32" and (built / target().library).exists():
            shutil.copy2(built / target().library, PACKAGE)


def _link_to_system(extension: Extension) -> None:
    """Takes library and headers from the system."""
    flags = needs.system_flags(library.version())
    extension.include_dirs += flags.include_dirs
    extension.define_macros += flags.define_macros
    extension.extra_compile_args += flags.compile_args
    extension.library_dirs += flags.library_dirs
    extension.libraries += flags.libraries
    extension.extra_link_args += flags.link_args


class SourceDistribution(sdist):
    """Takes along the tree, so that the archive builds, tests and packages like a clone."""

    FOLDERS = (
        ".ci",
        ".github",
        "benchmarks",
        "csrc",
        "cwist_jq",
        "docs",
        "include",
        "packaging",
        "tests",
    )
    FILES = (
        ".clang-format",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "SECURITY.md",
    )
    BUILT = re.compile(r"\.(pyc|so|o|dylib|dll|lib|pyd)$|/\.\w+_cache/")

    def make_distribution(self) -> None:
        """Writes the archive."""
        built = tuple(f"{(PACKAGE / folder).as_posix()}/" for folder in library.FOLDERS)
        for folder in self.FOLDERS:
            paths = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
            names = (path.as_posix() for path in paths)
            self.filelist.extend(
                name for name in names if not name.startswith(built) and not self.BUILT.search(name)
            )
        self.filelist.extend(self.FILES)
        super().make_distribution()

    def make_archive(self, *names: Any, **options: Any) -> str:
        """Writes a .tar.gz of our own, and what else may be asked for as usual."""
        base_name, kind = names
        if kind != "gztar":
            return super().make_archive(*names, **options)
        path = Path(f"{base_name}.tar.gz")
        archive.write(Path(options["base_dir"]), path)
        return str(path)
