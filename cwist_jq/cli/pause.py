"""cwist-jq pause and resume: whether a queue gives out jobs."""

from __future__ import annotations

import click

from cwist_jq.cli.session import Session, command_options

__all__ = ["pause", "resume"]


@click.command()
@click.argument("queue")
@command_options
def pause(session: Session, queue: str) -> None:
    """Stops all claims of QUEUE, by anyone, until it is resumed.

    Claimed jobs go on, and jobs can be enqueued. On NATS it needs server 2.11.
    """
    with session.queue(queue) as opened:
        opened.pause()
    _tell(session, queue, paused=True)


@click.command()
@click.argument("queue")
@command_options
def resume(session: Session, queue: str) -> None:
    """Lets claims of QUEUE go on."""
    with session.queue(queue) as opened:
        opened.resume()
    _tell(session, queue, paused=False)


def _tell(session: Session, queue: str, *, paused: bool) -> None:
    if session.out.as_json:
        session.out.record({"queue": queue, "paused": paused})
    session.out.line(f"{queue} is {'paused' if paused else 'open'}")
