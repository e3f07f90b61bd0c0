"""The program: its commands, and how each run of it ends."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

import cwist_jq
from cwist_jq.cli import exits
from cwist_jq.cli.bench import bench
from cwist_jq.cli.dead import dead
from cwist_jq.cli.dev import dev
from cwist_jq.cli.doctor import doctor
from cwist_jq.cli.enqueue import enqueue
from cwist_jq.cli.failure import Failure, report
from cwist_jq.cli.jobs import jobs
from cwist_jq.cli.pause import pause, resume
from cwist_jq.cli.purge import purge
from cwist_jq.cli.session import Session, command_options
from cwist_jq.cli.stats import stats
from cwist_jq.cli.worker import worker

__all__ = ["app"]

NAME = "cwist-jq"


class App(click.Group):
    """The group of all commands; it turns what happens into exit codes."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Runs the command line and exits."""
        options = {**extra, "prog_name": NAME, "standalone_mode": False}
        session = Session()

        def run() -> Any:
            return super(App, self).main(args, windows_expand_args=False, obj=session, **options)

        sys.exit(_exit_code(run, session))

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; click would report these two in its own way."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(exits.INTERRUPTED) from None
        except BrokenPipeError:
            raise click.exceptions.Exit(exits.PIPE_CLOSED) from None


def _exit_code(run: Callable[[], Any], session: Session) -> int:
    """Runs and flushes; every way to fail ends in a line on stderr and a code."""
    _prepare_output()
    try:
        result = run()
        code = result if isinstance(result, int) else exits.DONE
    except (KeyboardInterrupt, click.Abort):
        code = exits.INTERRUPTED
    except click.ClickException as error:
        report(error, as_json=session.out.as_json)
        code = error.exit_code
    except cwist_jq.Error as error:
        code = exits.code_of(error)
        report(Failure(str(error), code), as_json=session.out.as_json)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = exits.PIPE_CLOSED
    if code == exits.PIPE_CLOSED:
        _forget_stdout()
    return code


def _prepare_output() -> None:
    """What a terminal of few characters cannot show is escaped, and never fails."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _forget_stdout() -> None:
    """Keeps the interpreter from writing what is left, and from complaining, when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(cwist_jq.__version__, prog_name=NAME)
@command_options
def app(_: Session) -> None:
    """Looks after durable job queues on Redis and NATS JetStream.

    Name the server by --url or in CWIST_JQ_URL. The options --url, --timeout and --json may stand
    before or behind the command.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no server, 4 denied, 5 not found, 6 refused,
    7 unsupported, 8 not confirmed, 9 an extra is missing, 130 Ctrl-C, 141 output closed.
    """
    # What the library warns about is doctor's to say, and the worker's, which sets its own level.
    logging.getLogger("cwist_jq").setLevel(logging.ERROR)


for _command in (
    bench,
    dead,
    dev,
    doctor,
    enqueue,
    jobs,
    pause,
    purge,
    resume,
    stats,
    worker,
):
    app.add_command(_command)
