"""The archive of the sdist: the same bytes for the same files, whoever makes it, and where."""

import gzip
import os
import tarfile
from pathlib import Path


def write(folder: Path, archive: Path) -> None:
    """Packs a folder into a .tar.gz, without the names and the rights of this machine's users.

    Args:
        folder: What to pack, relative to the working directory.
        archive: The file to write.

    SOURCE_DATE_EPOCH, when it is set, is the time of everything inside.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")

    def neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        entry.mtime = int(epoch or entry.mtime)
        return entry

    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch or 0)) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        tar.add(folder, filter=neutral)  # in the order of the names
