"""Our Python: the same loops as benchmarks/c/frame.c, with the same command line.

python -m benchmarks.ours URL QUEUE OPERATION COUNT DEPTH SIZE
"""

from __future__ import annotations

import sys
import time

import cwist_jq

VISIBILITY = 3600.0
PATIENCE = 10.0
PACE = 0.002


class Loops:
    """One connection, one queue, and what can be done with them."""

    def __init__(self, url: str, queue: str, count: int, depth: int, size: int) -> None:
        self.count = count
        self.depth = depth
        self.size = size
        self.payload = bytes((i * 31 + 7) & 0xFF for i in range(size))
        self.queue = cwist_jq.connect(url).queue(queue, visibility_timeout=VISIBILITY)

    def enqueue(self) -> None:
        """One at a time."""
        enqueue, payload = self.queue.enqueue, self.payload
        for _ in range(self.count):
            enqueue(payload)

    def enqueue_many(self) -> None:
        """In batches, ids included."""
        enqueue_many, payloads = self.queue.enqueue_many, [self.payload] * self.depth
        for _ in range(self.count // self.depth):
            ids = enqueue_many(payloads)
        if len(ids) != self.depth:
            raise SystemExit("enqueue_many: an id is missing")

    def drain(self) -> None:
        """In batches; each payload is read."""
        claim_many, ack_many = self.queue.claim_many, self.queue.ack_many
        left, size, depth = self.count, self.size, self.depth
        while left > 0:
            jobs = claim_many(depth, timeout=PATIENCE)
            if not jobs:
                raise SystemExit("drain: jobs are missing")
            for job in jobs:
                if len(job.payload) != size:
                    raise SystemExit("drain: a payload of another length came")
            ack_many(jobs)
            left -= len(jobs)

    def drain_next(self) -> None:
        """In batches, the next one claimed with the acks of the last."""
        left, size, depth = self.count, self.size, self.depth
        jobs: list[cwist_jq.Job] = []
        while left > 0:
            jobs = self.queue.ack_and_claim(jobs, min(left, depth), timeout=PATIENCE)
            if not jobs:
                raise SystemExit("drain-next: jobs are missing")
            for job in jobs:
                if len(job.payload) != size:
                    raise SystemExit("drain-next: a payload of another length came")
            left -= len(jobs)
        self.queue.ack_many(jobs)

    def drain_one(self) -> None:
        """One at a time."""
        claim, size = self.queue.claim, self.size
        for _ in range(self.count):
            job = claim(timeout=PATIENCE)
            if job is None or len(job.payload) != size:
                raise SystemExit("drain-one: no job, or a payload of another length")
            job.ack()

    def add(self) -> None:
        """Now and then one, for an idle worker, with the time in it."""
        rest = self.payload[8:]
        for _ in range(self.count):
            time.sleep(PACE)
            self.queue.enqueue(time.monotonic_ns().to_bytes(8, sys.byteorder) + rest)

    def wait(self) -> list[int]:
        """Waits for each job; the time from the stamp in it to the return of the claim, in ns."""
        found = []
        for _ in range(self.count):
            job = self.queue.claim()
            now = time.monotonic_ns()
            if job is None:
                raise SystemExit("wait: no job")
            found.append(now - int.from_bytes(job.payload[:8], sys.byteorder))
            job.ack()
        return found


def resident_kib() -> int:
    """The memory of this process."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main() -> int:
    """The command line."""
    url, queue, operation, count, depth, size = sys.argv[1:]
    loops = Loops(url, queue, int(count), int(depth), int(size))
    loop = getattr(loops, operation.replace("-", "_"))
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic_ns()
    latencies = loop()
    end = time.monotonic_ns()
    # Written by hand: the memory is that of a worker without the json module.
    result = f'"ns": {latencies}' if latencies else f'"start": {start}, "end": {end}'
    print(f'{{{result}, "resident_kib": {resident_kib()}}}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
