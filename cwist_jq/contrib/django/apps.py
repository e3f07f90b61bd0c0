"""The Django application, which brings the command cwist_jq_worker."""

from __future__ import annotations

from django.apps import AppConfig

__all__ = ["CwistJqConfig"]


class CwistJqConfig(AppConfig):
    """It has no models."""

    name = "cwist_jq.contrib.django"
    label = "cwist_jq"
    verbose_name = "cwist_jq"
