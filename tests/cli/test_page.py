"""docs/cli.md says what the program does."""

from __future__ import annotations

import re

import click

from cwist_jq.cli import exits
from cwist_jq.cli.app import app
from tests.servers import ROOT

_PAGE = (ROOT / "docs" / "cli.md").read_text()


def test_every_exit_code_is_on_the_page() -> None:
    codes = {str(value) for name, value in vars(exits).items() if name.isupper() and name[0] != "_"}
    assert set(re.findall(r"^\| (\d+) \|", _PAGE, re.MULTILINE)) == codes


def test_every_command_is_on_the_page() -> None:
    context = click.Context(app)
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        below = command.list_commands(context) if isinstance(command, click.Group) else [""]
        for verb in below:
            assert re.search(rf"`{name} ?{verb}\b", _PAGE), (name, verb)


def test_every_option_that_is_named_exists() -> None:
    context = click.Context(app)
    known = {"--help", "--yes", "--no"}
    groups: list[click.Command] = [app]
    while groups:
        command = groups.pop()
        known.update(word for option in command.params for word in option.opts)
        if isinstance(command, click.Group):
            groups += [
                c for n in command.list_commands(context) if (c := command.get_command(context, n))
            ]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", _PAGE)) <= known
