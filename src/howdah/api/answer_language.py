"""Renders the sentences of an answer in the language that the request asks for in `Accept-Language`.

The rule: the shape of an answer says which of its texts are sentences (`schemas.Sentence`), so handlers know nothing
of languages. English is what they return; it needs no work.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Annotated, Any

from howdah.api import schemas
from howdah.api.answer_shapes import find_shape
from howdah.api.http_server import Request
from howdah.locale.messages import render

Translate = Callable[[Any, str], Any]


def request_language(request: Request) -> str:
    """Return the language that the caller prefers: `zh`, or `en` where it names neither or says nothing."""
    return preferred_language(request.headers.get("accept-language", ""))


def preferred_language(accepted: str) -> str:
    """Return the language that a header `Accept-Language` prefers."""
    weights = {"en": 0.0, "zh": 0.0}
    for entry in accepted.split(","):
        tag, _, parameter = entry.strip().lower().partition(";")
        language = tag.strip().partition("-")[0]
        if language in weights:
            weights[language] = max(weights[language], _weight(parameter))
    return "zh" if weights["zh"] > weights["en"] else "en"


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


def has_sentences(shape: str) -> bool:
    """Return whether answers of this shape hold sentences."""
    return _translator_of(shape) is not None


def translate_answer(answer: Any, shape: str, language: str) -> Any:
    """Return an answer of this shape (`Route.answer`) with its sentences in the language."""
    translate = _translator_of(shape) if language != "en" else None
    return answer if translate is None else translate(answer, language)


@functools.cache
def _translator_of(shape: str) -> Translate | None:
    kind = find_shape(shape)
    return None if kind is None else _translator(kind)


@functools.cache
def _translator(kind: Any) -> Translate | None:
    """Return a function that translates the sentences in values of a type; None where there are none."""
    if kind == schemas.Sentence:
        return render
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _translator(arguments[0])
    if origin is list:
        return _translate_items(_translator(arguments[0]))
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        found = {name: _translator(hint) for name, hint in hints.items()}
        return _translate_fields({name: translate for name, translate in found.items() if translate is not None})
    nullable = [argument for argument in arguments if argument is not type(None)]
    return _translator(nullable[0]) if len(nullable) == 1 and len(arguments) == 2 else None


def _translate_items(translate: Translate | None) -> Translate | None:
    return None if translate is None else lambda items, language: [translate(item, language) for item in items]


def _translate_fields(fields: dict[str, Translate]) -> Translate | None:
    def translate_record(record: Any, language: str) -> Any:
        if not isinstance(record, dict):
            return record
        return {
            **record,
            **{name: translate(record[name], language) for name, translate in fields.items() if name in record},
        }

    return translate_record if fields else None
