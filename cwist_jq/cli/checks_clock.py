"""Whether the clocks of the server and of this machine agree."""

from __future__ import annotations

from cwist_jq.cli.finding import Finding, fine, warning

__all__ = ["clock_finding"]

_FAR = 2.0  # seconds


def clock_finding(server: float, before: float, after: float) -> Finding:
    """Compares the server's time with the local time before and after it was asked for."""
    # Anything between the two is right; only what lies outside is known to be off.
    ahead = server - after if server > after else min(server - before, 0.0)
    if abs(ahead) < _FAR:
        return fine("clock", f"within {max(abs(ahead), after - before):.3f} s of this machine's")
    how = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'}"
    return warning(
        "clock",
        f"the server's is {how} this machine's; delays and times of death are the server's",
        "timedatectl set-ntp true",
    )
