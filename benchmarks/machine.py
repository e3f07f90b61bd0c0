"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from tests import servers

from . import rig


def _first_line(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return (done.stdout or done.stderr).splitlines()[0]


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text("utf-8")
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found[1] if found else platform.machine()


def _memory() -> str:
    found = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text("utf-8"))
    return f"{int(found[1]) / 2**20:.1f} GiB" if found else "unknown"


def _server(engine: str) -> str:
    try:
        program = servers.program(engine, rig.kind(engine))
    except servers.Unavailable:
        return "absent"
    line = _first_line(str(program), "--version")
    found = re.search(r"v=?(\d+(?:\.\d+)+)", line)
    return found[1] if found else line


def describe() -> dict[str, str]:
    """Machine and versions, as the report names them."""
    return {
        "processor": _processor(),
        "processors": str(os.cpu_count()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "compiler": _first_line("cc", "--version"),
        "redis": _server("redis"),
        "nats": _server("nats"),
        "hiredis": _first_line("pkg-config", "--modversion", "hiredis"),
        "libnats": _first_line("pkg-config", "--modversion", "libnats"),
        "commit": _first_line("git", "-C", str(servers.ROOT), "rev-parse", "--short", "HEAD"),
    }
