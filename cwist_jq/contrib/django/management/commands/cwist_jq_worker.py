"""manage.py cwist_jq_worker: runs the tasks of a DurableBackend."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from cwist_jq.contrib.django.tasks_api import DEFAULT_TASK_BACKEND_ALIAS
from cwist_jq.contrib.django.work import make_worker
from cwist_jq.errors import Error

__all__ = ["Command"]

_LEVELS = [logging.ERROR, logging.INFO, logging.DEBUG]


class Command(BaseCommand):
    """Runs until SIGTERM or Ctrl-C."""

    help = (
        "Runs the tasks of a DurableBackend. The first Ctrl-C or SIGTERM lets running tasks end "
        "and hands the rest back, and the exit code is 0; the second ends at once."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The command line."""
        parser.add_argument(
            "queues",
            nargs="*",
            metavar="QUEUE[=WEIGHT]",
            help="the most urgent first, or each with a weight; else all QUEUES of the backend",
        )
        parser.add_argument(
            "--backend",
            default=DEFAULT_TASK_BACKEND_ALIAS,
            help="its alias in TASKS (%(default)s)",
        )
        parser.add_argument(
            "--concurrency", type=int, default=8, help="how many tasks at once (%(default)s)"
        )
        parser.add_argument(
            "--processes",
            type=int,
            default=0,
            help="run tasks in so many child processes instead of threads (%(default)s)",
        )
        parser.add_argument(
            "--shutdown-timeout",
            type=float,
            default=25.0,
            metavar="SECONDS",
            help="how long running tasks may go on after the first signal (%(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 (Django's)
        """Runs the worker.

        Raises:
            CommandError: An argument or a setting is wrong, or the server cannot be reached.
        """
        _log(options["verbosity"])
        try:
            worker = make_worker(
                options["backend"],
                _queues(options["queues"]),
                concurrency=options["concurrency"],
                processes=options["processes"],
                shutdown_timeout=options["shutdown_timeout"],
            )
            worker.run()
        except (Error, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error


def _queues(words: list[str]) -> list[str] | dict[str, int] | None:
    """Names, or weights by name when a word has one."""
    if not any("=" in word for word in words):
        return words or None
    weights = {}
    for word in words:
        name, _, weight = word.partition("=")
        if not weight.isdecimal():
            raise CommandError(f"{word} has no weight; with one, each is QUEUE=WEIGHT")
        weights[name] = int(weight)
    return weights


def _log(verbosity: int) -> None:
    """Shows what the worker logs, unless the project's LOGGING sees to it."""
    logger = logging.getLogger("cwist_jq.worker")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, 2)])
