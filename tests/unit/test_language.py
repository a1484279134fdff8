"""Tests that everything the command line prints has a Chinese translation, by reading the source."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import source

from howdah.api.hints import TEMPLATES
from howdah.cli import COMMANDS, cli
from howdah.cli.jobs import WIDE_COLUMNS
from howdah.cli.plan_view import ROLE_COLUMNS
from howdah.cli.terminal import TASK_COLUMNS, columns
from howdah.compat.submarine import help as submarine_help
from howdah.engines.info import known
from howdah.locale.catalogue import COMMAND_LINE, chinese

CHINESE = chinese(COMMAND_LINE)
HOWDAH = str(Path(sys.executable).with_name("howdah"))


def sayings() -> Iterator[tuple[str, ast.Call]]:
    """Every call of `_`, with where it is."""
    packages = ("howdah.cli.", "howdah.compat.", "howdah.functions.", "howdah.interactive.", "howdah.jupyter.")
    for module, path in source.modules().items():
        for node in source.nodes(module) if f"{module}.".startswith(packages) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_":
                yield f"{path.relative_to(source.SOURCE / 'howdah')}:{node.lineno}", node


@functools.cache
def literals() -> dict[str, tuple[str, ast.Call]]:
    return {
        node.args[0].value: (where, node)
        for where, node in sayings()
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def helps(command: click.Command) -> Iterator[str]:
    yield command.help or ""
    yield from (option.help for option in command.params if isinstance(option, click.Option) and option.help)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from helps(below)


def commands() -> Iterator[click.Command]:
    yield cli
    for target, _ in COMMANDS.values():
        module, _, name = target.partition(":")
        yield getattr(importlib.import_module(module), name)


def said() -> set[str]:
    summaries = {summary for _, summary in COMMANDS.values()}
    help_texts = {text for command in commands() for text in helps(command)}
    of_submarine = {*submarine_help.ACTIONS.values(), *submarine_help.OPTION_HELP.values()}
    return {
        *literals(),
        *TEMPLATES,
        *TASK_COLUMNS,
        *WIDE_COLUMNS,
        *ROLE_COLUMNS,
        *(info.how_to_configure for _, info in known() if info.how_to_configure),
        *summaries,
        *help_texts,
        *of_submarine,
    }


def names(text: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}


def test_everything_said_is_translated_and_nothing_else() -> None:
    assert said() - set(CHINESE) == set()
    assert set(CHINESE) - said() == set()


def test_what_is_not_a_literal_is_known() -> None:
    others = [where for where, node in sayings() if not isinstance(node.args[0], ast.Constant)]
    assert [where.partition(":")[0] for where in others] == [
        *["cli/__init__.py"] * 2,
        "cli/doctor.py",
        *["cli/i18n.py"] * 2,
        "cli/terminal.py",
        *["compat/submarine/help.py"] * 2,
    ]


def test_each_placeholder_has_its_value() -> None:
    given = {text: {keyword.arg for keyword in node.keywords} for text, (_, node) in literals().items()}
    assert [text for text, values in given.items() if values != names(text)] == []


@pytest.mark.parametrize(("variable", "value"), [("LANG", "zh_CN.UTF-8"), ("HOWDAH_LANGUAGE", "zh"), ("file", "zh")])
def test_help_is_chinese(variable: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"language: {value}\n" if variable == "file" else "")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "HOWDAH_"))}
    environment = {**kept, "HOWDAH_HOME": str(tmp_path), "PYTHONUTF8": "1", variable: value}
    for arguments, words in (((), "列出你的作业"), (("run",), "显示谁的输出"), (("sandbox", "up"), "启动沙箱")):
        done = subprocess.run(
            [HOWDAH, *arguments, "--help"], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert words in done.stdout


def test_columns_count_places_not_characters() -> None:
    assert list(columns([("任务", "状态"), ("worker:0", "RUNNING")])) == ["任务      状态", "worker:0  RUNNING"]
