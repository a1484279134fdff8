"""Tests that the help of each command has examples, and that the commands take them."""

from __future__ import annotations

import importlib
import shlex

import click
import pytest

from howdah.cli import COMMANDS

OTHERS = ("howdah.compat.", "howdah.jupyter.")
"""Other systems' commands have those systems' documents."""
NONE = {"ssh-proxy"}
"""Is started by ssh, not by people."""


def command_of(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def arguments_of(line: str) -> tuple[str, list[str]]:
    """The command of an example, and its arguments: what a shell makes of the line."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    all_words = list(words)
    end = next((place for place, word in enumerate(all_words) if word in ("|", "||", "&&", ">")), len(all_words))
    return all_words[1], all_words[2:end]


NAMES = [name for name, (place, _) in COMMANDS.items() if not place.startswith(OTHERS) and name not in NONE]


@pytest.mark.parametrize("name", [name for name in NAMES if not isinstance(command_of(name), click.Group)])
def test_the_help_has_examples_that_the_command_takes(name: str) -> None:
    command = command_of(name)
    lines = (command.epilog or "").splitlines()
    shown = [line.strip() for line in lines if line.strip().startswith("howdah ")]
    assert 1 <= len(shown) <= 4, command.epilog
    for line in shown:
        called, arguments = arguments_of(line)
        known = command_of(called)
        known.make_parser(click.Context(known)).parse_args(arguments)  # raises for an option that there is not
