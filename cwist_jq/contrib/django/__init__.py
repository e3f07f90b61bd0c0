"""Django's Tasks on durable queues: a backend for `TASKS`, and the command that works on them.

Needs the extra cwist_jq[django], and on Django older than 6.0 the package django-tasks. See
docs/django.md.

Example:
    INSTALLED_APPS += ["cwist_jq.contrib.django"]
    TASKS = {
        "default": {
            "BACKEND": "cwist_jq.contrib.django.DurableBackend",
            "OPTIONS": {"url": "redis://127.0.0.1:6379"},
        }
    }

    python manage.py cwist_jq_worker
"""

from __future__ import annotations

from cwist_jq.contrib.django.backend import DurableBackend
from cwist_jq.contrib.django.task import DurableTask
from cwist_jq.contrib.django.work import make_worker

__all__ = ["DurableBackend", "DurableTask", "make_worker"]
