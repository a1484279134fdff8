"""Translates English sentences that have no template into Chinese: those of event logs of earlier versions, and those
from outside.

The sentence is compared with the catalogue's templates until one fits. `PLACEHOLDERS` says what a name in braces may
stand for (any text, if the name is not there); that text is translated in its turn. Sentences with a template need none
of this (`howdah.locale.messages`), and nothing but that module calls this one for them.
"""

from __future__ import annotations

import functools
import re

from howdah.locale.catalogue import MISTAKE, STORED, chinese

DEPTH = 5
"""The most levels of sentences within sentences that are translated."""
MAX_LETTERS = 1000
PLACE = re.compile(r"\{(\w+)\}")
_TASK, _NAME, _COUNT, _AMOUNT = r"[^\s:,;]+:\d+", r"[^\s:;,]+", r"\d+", r"[\d.]+"
PLACEHOLDERS = {
    STORED: {
        "task": _TASK,
        "one": _TASK,
        "other": _TASK,
        "node": _NAME,
        "role": _NAME,
        "count": _COUNT,
        "all": _COUNT,
        "number": _COUNT,
        "code": r"-?\d+",
        "pid": _COUNT,
        "seconds": _AMOUNT,
        "minutes": _AMOUNT,
        "signal": r"SIG\w+ \(\d+\)",
        "kind": r"\w+",
        "name": r"'[^']+'|[^\s:;]+",
        "command": r"'[^']+'|[^:;']+",
        "level": r"\S+",
        "stream": r"\w+",
    },
    MISTAKE: {"value": r"""'.*?'|".*?"|\[.*?\]|\(.*?\)|\{.*?\}|\S+ (?:MiB|s)|\S+"""},
}
"""For each context: what a placeholder matches."""


def in_chinese(text: str, context: str = STORED, depth: int = DEPTH) -> str:
    """Return a sentence in Chinese as far as templates of `context` fit, else as it is."""
    if not depth or len(text) > MAX_LETTERS:
        return text
    for pattern, template in _templates(context):
        found = pattern.fullmatch(text)
        if found is not None:
            values = found.groupdict().items()
            return template.format(**{name: in_chinese(value, context, depth - 1) for name, value in values})
    return text


@functools.cache
def _templates(context: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the templates, those with the most literal words first."""
    ordered = sorted(chinese(context).items(), key=lambda pair: -len(PLACE.sub("", pair[0])))
    return [(_pattern(english, PLACEHOLDERS[context]), translated) for english, translated in ordered]


def _pattern(english: str, placeholders: dict[str, str]) -> re.Pattern[str]:
    parts = PLACE.split(english)
    kept = [
        f"(?P<{part}>{placeholders.get(part, '.+?')})" if at % 2 else re.escape(part) for at, part in enumerate(parts)
    ]
    return re.compile("".join(kept), re.DOTALL)
