"""Numbers and times as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt

__all__ = ["age", "moment", "size"]


def age(seconds: float | None) -> str:
    """A length of time in its two largest units; "-" for None."""
    if seconds is None:
        return "-"
    if seconds < 10:  # noqa: PLR2004 (where tenths stop to matter)
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for unit, length, below, step in (("d", 86400, "h", 3600), ("h", 3600, "m", 60)):
        if whole >= length:
            return f"{whole // length}{unit} {whole % length // step}{below}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"  # noqa: PLR2004 (a minute)


def size(count: int) -> str:
    """A number of bytes."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:  # noqa: PLR2004 (of each unit in the next)
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def moment(when: dt.datetime | None) -> str:
    """A time in UTC to the second; "-" for None."""
    return "-" if when is None else when.strftime("%Y-%m-%d %H:%M:%SZ")
