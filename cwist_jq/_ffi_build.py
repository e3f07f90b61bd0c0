"""Makes the extension module cwist_jq._native. Run by setup.py; never imported by the package.

The declarations come from the public headers (csrc/tools/gen_cdef.py) and from _cdef_extra.h. Which
sources and libraries are linked is added when the extension is built, in setup.py.
"""

import runpy
from pathlib import Path

from cffi import FFI

_tool = runpy.run_path(str(Path("csrc/tools/gen_cdef.py")))

ffibuilder = FFI()
ffibuilder.cdef(_tool["cdef"]("include") + Path("cwist_jq/_cdef_extra.h").read_text("utf-8"))
ffibuilder.set_source(
    "cwist_jq._native",
    '#include "_shim.c"\n',
    include_dirs=["include", "csrc", "cwist_jq"],
    depends=[
        *sorted(str(path) for path in Path("cwist_jq").glob("_shim*.c")),
        "cwist_jq/_cdef_extra.h",
        *sorted(str(path) for path in Path("include").rglob("*.h")),
    ],
)
