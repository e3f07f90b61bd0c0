"""cwist-jq worker: runs a worker that a module defines."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any

import click

from cwist_jq.cli import exits
from cwist_jq.cli.log import log_to_stderr
from cwist_jq.cli.session import Session, command_options
from cwist_jq.connection import URL_VARIABLE

__all__ = ["worker"]


@click.command()
@click.argument("target", metavar="MODULE:ATTRIBUTE")
@click.option(
    "--app-dir",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    metavar="FOLDER",
    help="Where MODULE is looked for first (the working folder).",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="What is logged to stderr, unless MODULE sets up logging (info).",
)
@command_options
def worker(session: Session, target: str, app_dir: str, log_level: str) -> None:
    """Runs the Worker that ATTRIBUTE of MODULE is, or that it returns when it is a function.

    --url stands in CWIST_JQ_URL while the module is imported, so that connect() finds it. The first
    Ctrl-C or SIGTERM lets running jobs end and hands the rest back, and the exit code is 0; the
    second ends at once.
    """
    logging.getLogger("cwist_jq").setLevel(log_level.upper())
    found = _find(session, target, app_dir)
    log_to_stderr()
    if session.out.as_json:
        session.out.record({"worker": target, "pid": os.getpid()})
        sys.stdout.flush()
    code = found.run()
    click.get_current_context().exit(code if isinstance(code, int) else exits.DONE)


def _find(session: Session, target: str, app_dir: str) -> Any:
    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        raise click.UsageError(f"{target} is no MODULE:ATTRIBUTE, as in shop.work:worker")
    if session.has_url:
        os.environ[URL_VARIABLE] = session.url
    sys.path.insert(0, os.path.abspath(app_dir))  # noqa: PTH100 (a link is left as it is)
    found = _import(module_name)
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise click.UsageError(f"{target}: there is no {name} in {module_name}") from None
    from cwist_jq.worker import Worker

    made = found() if callable(found) and not isinstance(found, Worker) else found
    if not isinstance(made, Worker):
        raise click.UsageError(f"{target} is a {type(made).__name__}, not a cwist_jq Worker")
    return made


def _import(name: str) -> Any:
    """Imports the module; what goes wrong inside it is its own and shows its traceback."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise click.UsageError(f"there is no module {error.name}; see --app-dir") from None
