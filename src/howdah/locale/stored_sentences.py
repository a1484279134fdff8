"""Translates into Chinese the sentences that masters, executors, engines and compat commands write down in English.

Event logs of any age hold these sentences as they were written, so the table beside this file finds the template of a
sentence again. The page uses the same table (frontend/src/translateStored.ts). `kinds` says what a name in braces may
stand for (any text, if it says nothing); the text that it stands for is translated in its turn.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

FILE = Path(__file__).with_name("stored_sentences.zh.json")
DEPTH = 5
"""Sentences within sentences, at most."""
LONGEST = 1000
PLACE = re.compile(r"\{(\w+)\}")


def in_chinese(text: str, depth: int = DEPTH, file: Path = FILE) -> str:
    """As far as its templates are known, those of the table in `file`; else as it is."""
    if not depth or len(text) > LONGEST:
        return text
    for pattern, chinese in _templates(file):
        found = pattern.fullmatch(text)
        if found is not None:
            values = found.groupdict().items()
            return chinese.format(**{name: in_chinese(value, depth - 1, file) for name, value in values})
    return text


@functools.cache
def _templates(file: Path) -> list[tuple[re.Pattern[str], str]]:
    """Return the templates, with those that have most words of their own first."""
    table = json.loads(file.read_text(encoding="utf-8"))
    ordered = sorted(table["sentences"].items(), key=lambda one: -len(PLACE.sub("", one[0])))
    return [(_pattern(english, table["kinds"]), chinese) for english, chinese in ordered]


def _pattern(english: str, kinds: dict[str, str]) -> re.Pattern[str]:
    parts = PLACE.split(english)
    kept = [f"(?P<{part}>{kinds.get(part, '.+?')})" if at % 2 else re.escape(part) for at, part in enumerate(parts)]
    return re.compile("".join(kept), re.DOTALL)
