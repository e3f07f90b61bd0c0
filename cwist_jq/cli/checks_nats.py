"""What doctor looks at on a NATS server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cwist_jq.cli import units
from cwist_jq.cli.finding import Finding, asked, fine, note, warning, wrong
from cwist_jq.cli.probe import Refusal
from cwist_jq.cli.probe_nats import NatsProbe, version_of

__all__ = ["server"]

_NEARLY_FULL = 0.9
_FEATURES = (((2, 11), "pause"), ((2, 12), "delayed enqueue, snooze, all-or-none batches"))


def server(probe: NatsProbe) -> Iterator[Finding]:
    """The checks that need no queue."""
    yield from _version(probe)
    yield from asked("jetstream", lambda: _jetstream(probe))


def _version(probe: NatsProbe) -> Iterator[Finding]:
    version = version_of(probe.info)
    name = f"nats-server {probe.info.get('version', 'unknown')}"
    cluster = probe.info.get("cluster")
    yield fine("version", f"{name}, cluster {cluster}" if cluster else name)
    missing = [f"{what} (2.{minor})" for (_, minor), what in _FEATURES if version < (2, minor)]
    if missing:
        yield note("version", f"too old for {'; '.join(missing)}", "upgrade nats-server")


def _jetstream(probe: NatsProbe) -> Iterator[Finding]:
    try:
        account = probe.api("INFO")
    except Refusal as refusal:
        if "ermission" in str(refusal):
            raise
        yield wrong(
            "jetstream",
            f"JetStream is off: {refusal}",
            "nats-server -js -sd /var/lib/nats (or jetstream { store_dir: ... } in nats.conf)",
        )
        return
    yield fine("jetstream", f"on; payloads and headers up to {_size(probe.info['max_payload'])}")
    yield from _storage(account)


def _storage(account: dict[str, Any]) -> Iterator[Finding]:
    used = int(account.get("storage", 0))
    most = int(account.get("limits", {}).get("max_storage", -1))
    if most < 0:
        yield note("storage", f"{units.size(used)} used; the account has no limit of its own")
    elif used > most * _NEARLY_FULL:
        yield warning(
            "storage",
            f"{units.size(used)} of {units.size(most)} used: a full account takes no jobs",
            "raise max_file in the jetstream block of nats.conf, or the account's limit",
        )
    else:
        yield fine("storage", f"{units.size(used)} of {units.size(most)} used")


def _size(count: object) -> str:
    return units.size(int(str(count)))
