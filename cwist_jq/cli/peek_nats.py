"""Ready jobs on NATS: the messages behind the last one that the consumer was given."""

from __future__ import annotations

import base64
import re
from typing import Any

from cwist_jq.cli.peeked import Peeked
from cwist_jq.cli.probe import Refusal
from cwist_jq.cli.probe_nats import NatsProbe, parse_headers, stream_name

__all__ = ["CONSUMER", "NOT_THERE", "ready"]

CONSUMER = "cwist-jq"
NO_STREAM, NO_CONSUMER, NO_MESSAGE = 10059, 10014, 10037
NOT_THERE = {NO_STREAM, NO_CONSUMER, NO_MESSAGE}


def ready(probe: NatsProbe, queue: str, most: int) -> list[Peeked]:
    """Up to so many jobs, in the order of claims."""
    stream = stream_name(queue)
    sequence = _delivered(probe, stream) + 1
    found: list[Peeked] = []
    while len(found) < most:
        question = {"seq": sequence, "next_by_subj": f"{stream}.>"}
        try:
            message = probe.api(f"STREAM.MSG.GET.{stream}", question)["message"]
        except Refusal as refusal:
            if refusal.code in NOT_THERE:
                break
            raise
        found.append(_job(stream, message))
        sequence = message["seq"] + 1
    return found


def _delivered(probe: NatsProbe, stream: str) -> int:
    """The sequence of the last message that was given to the consumer."""
    try:
        info = probe.api(f"CONSUMER.INFO.{stream}.{CONSUMER}")
    except Refusal as refusal:
        if refusal.code in NOT_THERE:
            return 0
        raise
    return int(info["delivered"]["stream_seq"])


def _job(stream: str, message: dict[str, Any]) -> Peeked:
    headers = parse_headers(base64.b64decode(message.get("hdrs") or ""))
    quoted = headers.get("Cwist-Type-Quoted")
    spent = headers.get("Cwist-Attempts", "0")
    return Peeked(
        headers.get("Cwist-Id", str(message["seq"])),
        (quoted[1:-1] if quoted else headers.get("Cwist-Type")) or None,
        int(spent) if spent.isascii() and spent.isdigit() else 0,
        _key(stream, message["subject"]),
        {n: v for n, v in headers.items() if not n.startswith(("Cwist-", "Nats-"))},
        base64.b64decode(message.get("data") or ""),
    )


def _key(stream: str, subject: str) -> str | None:
    prefix = f"{stream}.jobs.k."
    if not subject.startswith(prefix):
        return None
    token = subject[len(prefix) :].encode()
    plain = re.sub(rb"=([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), token)
    return plain.decode("utf-8", "surrogateescape")
