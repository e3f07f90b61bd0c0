"""The C library inside the wheel that `make wheel` left in dist/, for C programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Installed, Programs, output, undefined_symbols

WAYS = ("cwist-jq-config", "pkg-config", "cmake")


@pytest.fixture(scope="session", params=WAYS)
def programs(
    request: pytest.FixtureRequest,
    wheel: Installed,
    make_programs: Callable[..., Path],
    make_with_cmake: Callable[..., Path],
) -> Programs:
    """The project, built in each way that the wheel offers."""
    if request.param == "cwist-jq-config":
        return Programs(make_programs(wheel.config("--cflags", "--libs")))
    if request.param == "cmake":
        return Programs(make_with_cmake(f"-Dcwist_jq_DIR={wheel.config('--cmakedir')}"))
    env = {"PKG_CONFIG_LIBDIR": wheel.config("--pkgconfigdir"), "PKG_CONFIG_PATH": ""}
    flags = output("pkg-config", "--cflags", "--libs", "cwist-jq", env=env).strip()
    folders = wheel.ask("*cwist_jq.get_library_dirs(), sep=':'")
    return Programs(make_programs(flags), {"LD_LIBRARY_PATH": folders})


def test_producer_and_worker(programs: Programs, url: str, queue_name: str) -> None:
    programs.work(url, queue_name)
    for name in ("producer", "worker", "worker_cpp"):
        ours = {library for library in programs.needed(name) if "cwist" in library}
        assert ours == {"libcwist_jq.so.0"}


def test_everything_is_found_in_the_wheel(wheel: Installed) -> None:
    include = Path(wheel.ask("cwist_jq.get_include()"))
    assert include.is_relative_to(wheel.folder)
    assert (include / "cwist" / "sys" / "job" / "durable_queue_ext.h").exists()
    library = wheel.folder / "cwist_jq" / "lib" / "libcwist_jq.so.0"
    assert undefined_symbols(library) == []
    assert "Library soname: [libcwist_jq.so.0]" in output("readelf", "-d", library)
    loaded = re.findall(r"=> (.*) \(0x", output("ldd", library))
    bundled = [path for path in loaded if "hiredis" in path or "nats" in path]
    assert len(bundled) == 2
    assert all(Path(path).is_relative_to(wheel.folder) for path in bundled)
