"""A worker: claims jobs from queues and runs handlers in threads, processes or on an event loop.

Example:
    from cwist_jq.worker import Retry, Worker

    worker = Worker("redis://127.0.0.1:6379", ["urgent", "emails"], concurrency=8)

    @worker.handler("welcome")
    def welcome(data):
        if not send(data["to"]):
            raise Retry(30)

    worker.run()

It logs to the logger "cwist_jq.worker".
"""

from __future__ import annotations

from cwist_jq.worker.child import RemoteJob
from cwist_jq.worker.codec import enqueue_json
from cwist_jq.worker.errors import JobError, Reject, Retry, Snooze
from cwist_jq.worker.middleware import Middleware
from cwist_jq.worker.worker import Worker

__all__ = [
    "JobError",
    "Middleware",
    "Reject",
    "RemoteJob",
    "Retry",
    "Snooze",
    "Worker",
    "enqueue_json",
]
