"""The whole life of jobs, with whatever cwist_jq is installed: lifecycle.py URL…

Stands alone: it needs the package and a server for each URL, and nothing of this tree. It prints
one line for each server and ends with 1 when something did not behave. So that an engine that was
left out cannot pass, say which must be there: lifecycle.py --engines redis,nats URL…
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import cwist_jq

LEASE = 0.8
RETRY_DELAY = 0.3
WAIT = 10.0
SCHEMES = {"redis": "redis", "rediss": "redis", "unix": "redis", "nats": "nats", "tls": "nats"}


class Gap(Exception):
    """Something did not behave; the text says what."""


def expect(truth: object, what: str) -> None:
    """Fails the run unless the first argument is true."""
    if not truth:
        raise Gap(what)


def claim(queue: cwist_jq.Queue) -> cwist_jq.Job:
    """The next job, which must be there soon."""
    job = queue.claim(timeout=WAIT)
    if job is None:
        raise Gap(f"no job within {WAIT} s")
    return job


def acked(queue: cwist_jq.Queue) -> None:
    """Enqueue, claim, ack: the job comes once, as it was put in."""
    payload = bytes(range(256)) * 400
    job_id = queue.enqueue(payload, type="größe")
    job = claim(queue)
    expect(job.payload == payload, "the payload changed")
    expect((job.id, job.type, job.attempts) == (job_id, "größe", 1), f"a wrong job: {job!r}")
    job.ack()
    expect(queue.claim(timeout=LEASE * 2) is None, "an acked job came back")


def retried(queue: cwist_jq.Queue) -> None:
    """A nack: the job comes back after the retry delay, and not before."""
    queue.enqueue(b"retried")
    job = claim(queue)
    start = time.monotonic()
    job.nack("first failure")
    job = claim(queue)
    waited = time.monotonic() - start
    expect(job.attempts == 2, f"attempts after a nack: {job.attempts}, not 2")
    expect(waited > RETRY_DELAY * 0.8, f"a nacked job came back after {waited:.3f} s")
    job.ack()


def released(queue: cwist_jq.Queue) -> None:
    """A release: the job comes back at once, and no attempt was spent."""
    queue.enqueue(b"released")
    claim(queue).release()
    job = claim(queue)
    expect(job.attempts == 1, f"attempts after a release: {job.attempts}, not 1")
    job.ack()


def expired(queue: cwist_jq.Queue) -> None:
    """A lease that ends: the job comes back, and the late ack is refused."""
    queue.enqueue(b"expired")
    late = claim(queue)
    again = claim(queue)
    expect(again.payload == b"expired", "another job came back")
    expect(again.attempts == 2, f"attempts after a lost lease: {again.attempts}, not 2")
    try:
        late.ack()
    except cwist_jq.LeaseLost:
        pass
    else:
        raise Gap("an ack after the lease was taken as valid")
    again.ack()


def extended(queue: cwist_jq.Queue) -> None:
    """An extended lease holds longer than the timeout."""
    queue.enqueue(b"extended")
    job = claim(queue)
    end = time.monotonic() + LEASE * 2
    while time.monotonic() < end:
        job.extend()
        expect(queue.claim(timeout=LEASE / 4) is None, "an extended job came back")
    job.ack()


def buried(queue: cwist_jq.Queue) -> None:
    """A job that fails as often as it may becomes a dead letter."""
    before = queue.dead_count()
    queue.enqueue(b"buried")
    for attempt in (1, 2, 3):
        job = claim(queue)
        expect(job.attempts == attempt, f"attempt {job.attempts}, not {attempt}")
        job.nack("always fails")
    expect(queue.claim(timeout=RETRY_DELAY * 2) is None, "a dead job came back")
    expect(queue.dead_count() == before + 1, "the dead letter is missing")


STEPS = (acked, retried, released, expired, extended, buried)


def run(url: str) -> str:
    """Goes through all steps on one server; the line to print."""
    start = time.monotonic()
    with cwist_jq.connect(url) as connection:
        queue = connection.queue(
            f"lifecycle-{uuid.uuid4().hex}",
            visibility_timeout=LEASE,
            max_retries=3,
            retry_delay=RETRY_DELAY,
        )
        for step in STEPS:
            try:
                step(queue)
            except (Gap, cwist_jq.Error) as error:
                raise Gap(f"{step.__name__}: {error}") from error
    seconds = time.monotonic() - start
    names = ", ".join(step.__name__ for step in STEPS)
    return f"{names}: as they should be, in {seconds:.1f} s"


def main() -> int:
    """Runs every server; 0 when all behaved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--engines", default="", help="the engines that must be among the URLs")
    chosen = parser.parse_args()
    scheme = {url: url.partition(":")[0] for url in chosen.urls}
    missing = set(filter(None, chosen.engines.split(","))) - {
        SCHEMES.get(name) for name in scheme.values()
    }
    if missing:
        print(f"lifecycle: no URL of {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    # The servers of a trial keep nothing on disk, which the library warns about.
    logging.getLogger("cwist_jq").setLevel(logging.ERROR)
    failed = 0
    with ThreadPoolExecutor(len(chosen.urls)) as threads:  # most of the time is waiting
        runs = {url: threads.submit(run, url) for url in chosen.urls}
    for url, done in runs.items():
        try:
            print(f"lifecycle: cwist_jq {cwist_jq.__version__}, {scheme[url]}: {done.result()}")
        except (Gap, cwist_jq.Error) as error:
            failed = 1
            print(f"lifecycle: {scheme[url]}: {error}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
