"""What the command line says, in English or Chinese. English is the key of the table beside this file;
tests/unit/test_language.py finds what lacks.

HOWDAH_LANGUAGE (en, zh, auto) decides, else the user's `language` setting, else LC_ALL, LC_MESSAGES, LANG. Errors
but mistakes in what the user wrote (`howdah.cli.mistakes`) keep English: people search for them. Help too is English in
the code; `localise` translates a command when it is loaded.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import click

from howdah.config.user_file import language_setting

FILE = Path(__file__).parents[1] / "locale" / "command_line.zh.json"
_language = "en"


def choose(wanted: str = "") -> str:
    """Set and return the language: `wanted`, else that of the environment, else that of the user's settings."""
    global _language
    wanted = wanted or os.environ.get("HOWDAH_LANGUAGE") or language_setting(os.environ) or "auto"
    if wanted == "auto":
        names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
        wanted = next((name for name in names if name), "en")
    _language = "zh" if wanted.lower().startswith("zh") else "en"
    return _language


def language() -> str:
    """The chosen language: en or zh."""
    return _language


@functools.cache
def chinese() -> dict[str, str]:
    """Return the Chinese of each text of the command line."""
    table: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return table


def say(text: str, **values: object) -> str:
    """Return `text` in the chosen language, with each `{name}` replaced."""
    chosen = chinese().get(text, text) if _language == "zh" else text
    return chosen.format(**values) if values else chosen


def translate_stored(text: object) -> str:
    """Return a sentence that a master, an executor, an engine or a compat command wrote in English, in the chosen
    language if its template is known."""
    if _language != "zh":
        return str(text)
    from howdah.locale.stored_sentences import in_chinese  # who reads English needs no table

    return in_chinese(str(text))


def localise(command: click.Command) -> None:
    """Put the help of a command, of its options and of its sub-commands into the chosen language."""
    command.help = say(command.help or "")
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = say(option.help)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        localise(below)
