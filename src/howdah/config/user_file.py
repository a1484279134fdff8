"""The file of the user's own settings, and its setting that is needed first: the language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from howdah.errors import SpecError
from howdah.localfiles.own_directories import howdah_home


def user_file(env: Mapping[str, str]) -> Path:
    """Return the path of the user's own settings."""
    if own := howdah_home(env):
        return own / "config.yaml"
    base = env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or Path.home(), ".config")
    return Path(base, "howdah", "config.yaml")


def language_setting(env: Mapping[str, str]) -> str:
    """Return the file's `language`, "" if it has none. Only that line is read, because reading YAML takes 40 ms."""
    try:
        text = user_file(env).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, SpecError):
        return ""  # reading the settings reports the error
    found = re.search(r"""^language:[ \t]*["']?(\w+)""", text, re.MULTILINE)
    return found[1] if found else ""
