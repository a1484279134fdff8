"""Reads the catalogue of translations: one source (`zh/LC_MESSAGES/howdah.po`) for command line, server and page.

The package's build compiles the source (tools/generate.py). Where it is not compiled, every text stays English.
"""

from __future__ import annotations

import functools
import gettext
from pathlib import Path

FILE = Path(__file__).parent / "zh" / "LC_MESSAGES" / "howdah.mo"
COMMAND_LINE, MISTAKE, STORED, CHART, PAGE = "", "mistake", "stored sentence", "chart", "page"
"""Contexts: who says a text."""


@functools.cache
def chinese(context: str) -> dict[str, str]:
    """Return the Chinese text for each English text of a context."""
    texts = _catalogue()
    if not context:
        return {text: translated for text, translated in texts.items() if text and "\x04" not in text}
    start = f"{context}\x04"
    return {text.removeprefix(start): translated for text, translated in texts.items() if text.startswith(start)}


@functools.cache
def _catalogue() -> dict[str, str]:
    """Return all texts. Each key is the context, the character 4 and the English text, as gettext stores it. gettext
    has no public function that lists its texts, and a stored sentence is found by comparing it with all of their
    templates."""
    try:
        with FILE.open("rb") as file:
            texts: dict[str, str] = vars(gettext.GNUTranslations(file))["_catalog"]
    except FileNotFoundError:
        return {}
    return texts
