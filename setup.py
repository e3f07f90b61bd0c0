"""Builds the package: libcwist_jq as a shared library, and the extension that is linked to it.

CWIST_JQ_WITHOUT=redis, nats or tls leaves a part out of the library. CWIST_JQ_SYSTEM=1 builds no
library and links the extension to the one that is installed. packaging/cwist_build does the work.
"""

import sys
import sysconfig
from pathlib import Path

import setuptools
from setuptools import setup

sys.path.insert(0, str(Path(__file__).resolve().parent / "packaging"))

from cwist_build import commands, library, needs

OLDEST_PYTHON = "cp39"
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

needs.require_cffi()
needs.require_free_threading(sys.version_info[:2], free_threaded=FREE_THREADED)

try:
    setup(
        version=library.version(),
        cffi_modules=["cwist_jq/_ffi_build.py:ffibuilder"],
        cmdclass={
            "build_py": commands.BuildPackage,
            "build_ext": commands.BuildNative,
            "sdist": commands.SourceDistribution,
        },
        # A free-threaded Python has no stable ABI: its wheels are for one version.
        options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": OLDEST_PYTHON}},
    )
except Exception:  # of many classes, from version to version
    needs.explain_old_setuptools(setuptools.__version__)
    raise
