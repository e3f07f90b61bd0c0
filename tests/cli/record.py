"""Records the session in docs/cli.md, by running it on a terminal beside a private Redis.

python -m tests.cli.record
"""

from __future__ import annotations

import re
from pathlib import Path

import cwist_jq
from tests import servers
from tests.cli.program import Program

_PAGE = servers.ROOT / "docs" / "cli.md"
_HEAD = "## A session\n"
_CONTROL = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")
#: What the live table writes before it draws itself again.
_AGAIN = re.compile(r"(?:\r?\x1b\[2K|\x1b\[1A)+")


def _frames(raw: str) -> list[str]:
    """What stood on the terminal, one after the other, without its control sequences."""
    frames = [_CONTROL.sub("", frame).replace("\r", "") for frame in _AGAIN.split(raw)]
    return ["\n".join(line.rstrip() for line in f.strip("\n").splitlines()) for f in frames if f]


def _watch(program: Program, conn: cwist_jq.Connection) -> list[str]:
    """Two looks, with a worker at work between them."""
    queue = conn.queue("emails", max_retries=2)
    with program.terminal("stats", "--watch", "--interval", "0.5") as terminal:
        terminal.read(" 1200 ")
        jobs = queue.claim_many(300, 5)
        queue.ack_many(jobs[:250])
        for job in jobs[250:260]:
            job.nack("no such host: mail.example", dead=True)
        terminal.read(" 40 ")
        terminal.type("\x03")
        terminal.end()
        frames = [frame for frame in _frames(terminal.read()) if "emails" in frame]
    queue.release_many(jobs[260:])
    return [frames[0], "", "(half a second later)", "", frames[-1].replace("^C", "").rstrip()]


def _session() -> list[str]:
    server = servers.start_server("redis", appendonly="everysec")
    try:
        with cwist_jq.connect(server.url) as conn:
            _fill(conn)
            program = Program(server.url)
            lines = ["$ cwist-jq stats --watch", *_watch(program, conn), "^C", ""]
            for words in (["dead", "list", "emails", "--most", "4"], ["doctor"]):
                with program.terminal(*words) as terminal:
                    code = terminal.end()
                    lines += [f"$ cwist-jq {' '.join(words)}", *_frames(terminal.read())]
                lines += [f"$ echo $?\n{code}", ""]
        return [line.replace(f":{server.port}", ":6379") for line in lines]
    finally:
        server.close()


def _fill(conn: cwist_jq.Connection) -> None:
    emails = conn.queue("emails")
    emails.enqueue(b"\x00\x1b[31m", type="import")
    job = emails.claim(5)
    assert job is not None
    job.nack("not UTF-8: \x1b[31m", dead=True)
    emails.enqueue_many([b'{"to": "a@b.co"}'] * 1200, type="welcome")
    reports = conn.queue("reports")
    reports.enqueue(b"{}", delay=3600)
    reports.enqueue(b"{}")
    reports.pause()


def main() -> None:
    """Writes the page anew."""
    page = Path(_PAGE).read_text()
    before = page[: page.index(_HEAD) + len(_HEAD)]
    session = "\n".join(_session()).rstrip()
    Path(_PAGE).write_text(f"{before}\n```\n{session}\n```\n")


if __name__ == "__main__":
    main()
