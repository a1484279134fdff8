"""Renders the sentences of events, statuses and errors in the reader's language.

The rule: a message is translated by its template. Only text without a template, which earlier versions wrote, or which
comes from outside, is compared with all templates (`howdah.locale.stored_sentences`). A message is recognised by its
attributes (`howdah.spec.message.Message`), because this package imports no other.
"""

from __future__ import annotations

import functools

from howdah.locale.catalogue import STORED, chinese
from howdah.locale.stored_sentences import PLACE, in_chinese


def render(text: str, language: str) -> str:
    """Return a sentence in the reader's language: `en` or `zh`. A sentence without a known translation stays
    English."""
    return _chinese(text) if language == "zh" else str.__str__(text)


def _chinese(text: str) -> str:
    template = getattr(text, "template", "")
    if not template:
        return _plain_in_chinese(str.__str__(text))
    values = {
        name: _chinese(value) if isinstance(value, str) else value for name, value in vars(text)["values"].items()
    }
    return PLACE.sub(lambda found: str(values.get(found[1], found[0])), chinese(STORED).get(template, template))


@functools.lru_cache(maxsize=1 << 12)
def _plain_in_chinese(text: str) -> str:
    """Translate text without a template. Pages and lists ask for the same texts again and again."""
    return in_chinese(text)
