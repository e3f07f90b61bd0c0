"""Whether the user may do on NATS what a worker needs.

The server judges a publish by its subject, before anything else. So each subject gets a message
that does nothing: no JSON for an API, a job that names another stream, an extension of no delivery.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from cwist_jq.cli.finding import Finding, fine, note, wrong
from cwist_jq.cli.peek_nats import CONSUMER
from cwist_jq.cli.probe_nats import NatsProbe

__all__ = ["rights"]

_NO_JSON = b"{"
_ELSEWHERE = {"Nats-Expected-Stream": "-"}


def rights(probe: NatsProbe, stream: str) -> Iterator[Finding]:
    """Says which subjects are missing."""
    worker = [
        "$JS.API.INFO",
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.STREAM.INFO.{stream}_DEAD",
        f"$JS.API.CONSUMER.INFO.{stream}.{CONSUMER}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{CONSUMER}",
        f"$JS.API.STREAM.MSG.GET.{stream}",
        f"$JS.API.STREAM.MSG.DELETE.{stream}",
    ]
    maker = [
        f"$JS.API.STREAM.CREATE.{stream}",
        f"$JS.API.STREAM.CREATE.{stream}_DEAD",
        f"$JS.API.STREAM.UPDATE.{stream}",
        f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}",
    ]
    jobs = [f"{stream}.jobs.copy.0", f"{stream}.jobs.k.0", f"{stream}.dead.0.0"]
    producer = [f"{stream}.jobs", f"{stream}=wait.jobs.0"]
    for subject in worker + maker:
        probe.publish(subject, _NO_JSON)
    for subject in jobs + producer:
        probe.publish(subject, b"", _ELSEWHERE)
    probe.publish(f"$JS.ACK.{stream}.{CONSUMER}.1.0.0.0.0", b"+WPI")
    missing = [_subject(violation) for violation in probe.settle()]
    further = [subject for subject in missing if subject in maker + producer]
    needed = [subject for subject in missing if subject not in further]
    if needed:
        yield wrong(
            "rights",
            f"the user may not publish {', '.join(needed)}, which workers need",
            f"add to the user's permissions in nats.conf: publish: {json.dumps(needed)}",
        )
    if further:
        yield note(
            "rights",
            f"the user may not publish {', '.join(further)}: it cannot enqueue, or "
            "make or change what a queue needs",
            f"add to the user's permissions in nats.conf: publish: {json.dumps(further)}",
        )
    if not missing:
        yield fine("rights", "the user may do all that a worker needs")


def _subject(violation: str) -> str:
    found = re.search(r'"(.*)"', violation)
    return found[1] if found else violation
