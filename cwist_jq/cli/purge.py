"""cwist-jq purge: empties a queue."""

from __future__ import annotations

import click

from cwist_jq.cli.confirm import confirm, yes_option
from cwist_jq.cli.progress import watched
from cwist_jq.cli.session import Session, command_options

__all__ = ["purge"]


@click.command()
@click.argument("queue")
@yes_option
@command_options
def purge(session: Session, queue: str, yes: bool) -> None:  # noqa: FBT001 (click's)
    """Deletes the jobs of QUEUE that are ready or delayed now, for good.

    Claimed jobs and dead letters stay.
    """
    with session.queue(queue) as opened:

        def left() -> int:
            found = opened.stats()
            return found.ready + found.delayed

        confirm(lambda: f"Delete the {left()} ready and delayed jobs of {queue} for good?", yes=yes)
        count = watched("purge", opened.purge, left, quiet=session.out.as_json)
    if session.out.as_json:
        session.out.record({"queue": queue, "purged": count})
    session.out.line(f"{count} {'job' if count == 1 else 'jobs'} deleted")
