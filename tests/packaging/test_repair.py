"""Wheels take the licences of what they bundle from the tree that .ci/wheel-libraries makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRIPLET = "wheel-linux"
PORTS = {"hiredis": ("1.4.0", "libhiredis.so.1.4.0"), "cnats": ("3.12.0", "libnats.so.3.12.0")}
LICENSE_OF = """
import sys
import repair_wheel
try:
    print(*repair_wheel.license_of(sys.argv[1]))
except repair_wheel.RepairError as error:
    print(error)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What vcpkg leaves: the libraries of a triplet, its lists, the licence of each port."""
    root = tmp_path / "installed"
    modules = root / TRIPLET / "lib" / "pkgconfig"
    modules.mkdir(parents=True)
    (root / "vcpkg" / "info").mkdir(parents=True)
    for port, (version, library) in PORTS.items():
        module = {"cnats": "libnats"}.get(port, port)
        lines = ["prefix=${pcfiledir}/../..", "libdir=${prefix}/lib", f"Name: {module}"]
        lines += ["Description: a port", f"Version: {version}", "Libs: -L${libdir}"]
        (modules / f"{module}.pc").write_text("\n".join([*lines, ""]), "utf-8")
        share = root / TRIPLET / "share" / port
        share.mkdir(parents=True)
        (share / "copyright").write_text(f"The licence of {port}.\n", "utf-8")
        listing = root / "vcpkg" / "info" / f"{port}_{version}_{TRIPLET}.list"
        listing.write_text(f"{TRIPLET}/\n{TRIPLET}/lib/{library}\n", "utf-8")
    return root


def license_of(installed: Path, library: str) -> str:
    environment = {
        **os.environ,
        "PKG_CONFIG_LIBDIR": str(installed / TRIPLET / "lib" / "pkgconfig"),
        "PYTHONPATH": str(ROOT / "packaging"),
    }
    command = [sys.executable, "-c", LICENSE_OF, library]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("port", PORTS)
def test_a_port_has_its_licence(installed: Path, port: str) -> None:
    copyright_file = installed / TRIPLET / "share" / port / "copyright"
    assert license_of(installed, PORTS[port][1]) == f"{port} {copyright_file}"


def test_a_library_of_nobody_stops_the_repair(installed: Path) -> None:
    assert "no package with a licence holds libnobody.so" in license_of(installed, "libnobody.so.1")
