"""The texts of the command line, in English or Chinese. English is the key of the catalogue of translations
(`howdah.locale.catalogue`); tests/unit/test_language.py finds missing translations.

HOWDAH_LANGUAGE (en, zh, auto) decides, else the user's `language` setting, else LC_ALL, LC_MESSAGES, LANG. Errors stay
English, because people search for them, except mistakes in what the user wrote (`howdah.cli.mistakes`). Help is English
in the code, too; `localise` translates a command when it is loaded.
"""

from __future__ import annotations

import os
import re

import click

from howdah.config.user_file import language_setting

_EXAMPLES = "Examples:"
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


def _(text: str, **values: object) -> str:
    """Return `text` in the chosen language, with each `{name}` replaced."""
    if _language == "zh":
        from howdah.locale.catalogue import COMMAND_LINE, chinese  # English needs no catalogue

        text = chinese(COMMAND_LINE).get(text, text)
    return text.format(**values) if values else text


def translate_stored(text: object) -> str:
    """Return a sentence of a master, an executor, an engine or a compat command in the chosen language, if its template
    is known. Nothing in the result controls the terminal, because another user's log may contain anything."""
    said = str(text)
    if _language == "zh":
        from howdah.locale.messages import render  # English needs no catalogue

        said = render(said, _language)
    if said.isprintable():
        return said
    from howdah.logs.output_text import readable

    return "\n".join(readable(line.encode("utf-8", "backslashreplace")) for line in re.split(r"\r?\n|\r", said))


def examples(*lines: str) -> str:
    """Return the text below a command's help: command lines, each on a line of its own."""
    return "\n".join(["\b", _EXAMPLES, *(f"  {line}" for line in lines)])


def localise(command: click.Command) -> None:
    """Translate the help of a command, of its options and of its sub-commands into the chosen language."""
    command.help = _(command.help or "")
    command.epilog = command.epilog and command.epilog.replace(_EXAMPLES, _("Examples:"))
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = _(option.help)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        localise(below)
