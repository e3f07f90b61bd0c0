"""The command line: cwist-jq, or python -m cwist_jq. It needs the extra cwist_jq[cli]."""

from __future__ import annotations

import sys

from cwist_jq.cli import exits

__all__ = ["main"]


def main() -> None:
    """Runs the command line and exits with one of the codes in exits.py."""
    try:
        import click  # noqa: F401 (only looked for)
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        sys.stderr.write(
            f'cwist-jq: {error.name} is not installed; run: pip install "cwist_jq[cli]"\n'
        )
        sys.exit(exits.NO_EXTRA)
    from cwist_jq.cli.app import app

    app()
