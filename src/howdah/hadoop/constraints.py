"""Parses YARN's placement constraints as people write them: `notin,node,worker`, `and(in,node,ps:notin,node,worker)`.

An expression means the same as for Hadoop's own parser (YARN's distributed shell, TonY). Text that Hadoop's parser
ignores, such as text after the last bracket, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from howdah.spec.validation import nearest
from howdah.spec.values import dataclass

SELF = "self"
NAMESPACES = (SELF, "not-self", "all")
"""The jobs whose containers are counted: this job, all other jobs, or all jobs. A tag is written as `all/hbase`; `self`
is left out."""
SCOPES = ("node", "rack")
UNLIMITED = 2**31 - 1
MAX_DEPTH = 20
_SINGLE = ("in", "notin", "cardinality")
_WORDS = (*_SINGLE, "and", "or")
_COMPOSITE = re.compile(r"\s*(and|or)\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Single:
    """Demands a number of containers on a node or rack before another container is placed there."""

    scope: str
    """The unit in which the containers are counted: node or rack."""
    tags: tuple[tuple[str, str], ...]
    """Each tag that is counted, as a namespace and a name."""
    min_cardinality: int
    """The least number of containers with each tag."""
    max_cardinality: int
    """The greatest number of containers with each tag."""


@dataclass(frozen=True)
class Composite:
    """Demands all of its parts (`and`), or one of them (`or`)."""

    kind: str
    parts: tuple[Constraint, ...]


Constraint = Single | Composite


def parse(text: str) -> Constraint:
    """Return the constraint that `text` describes.

    Raises:
        ValueError: `text` is no constraint; the message says in one line what is wrong, and at which character.
    """
    found, end = _constraint(text, 0, MAX_DEPTH)
    if text[end:].strip():
        raise _syntax_error(
            end, f"{text[end:].strip()!r} comes after the end; several constraints are and(…:…) or or(…:…)"
        )
    return found


def singles(constraint: Constraint) -> Iterator[Single]:
    """Yield all parts that are not composites."""
    if isinstance(constraint, Single):
        yield constraint
    else:
        for part in constraint.parts:
            yield from singles(part)


def _constraint(text: str, start: int, deeper: int) -> tuple[Constraint, int]:
    match = _COMPOSITE.match(text, start)
    if match is None:
        end = next((at for at in range(start, len(text)) if text[at] in ":()"), len(text))
        return _single(text[start:end], start), end
    if not deeper:
        raise _syntax_error(start, f"more than {MAX_DEPTH} brackets within each other")
    parts: list[Constraint] = []
    end = match.end() - 1
    while not parts or text[end : end + 1] == ":":
        part, end = _constraint(text, end + 1, deeper - 1)
        parts.append(part)
        end += len(text[end:]) - len(text[end:].lstrip())
    if text[end : end + 1] != ")":
        raise _syntax_error(end, f"{match[1]}(…) is not closed: its parts stand between : and end with )")
    return Composite(match[1].lower(), tuple(parts)), end + 1


def _single(text: str, start: int) -> Single:
    word, *rest = [part.strip() for part in text.split(",") if part.strip()] or [""]
    if word.lower() not in _SINGLE:
        raise _syntax_error(start, _unknown(word))
    if not rest or rest[0].lower() not in SCOPES:
        raise _syntax_error(start, f"{word} is followed by {' or '.join(SCOPES)}, not by {(rest or ['nothing'])[0]!r}")
    scope, tags = rest[0].lower(), rest[1:]
    min_cardinality, max_cardinality = (1, UNLIMITED) if word.lower() == "in" else (0, 0)
    if word.lower() == "cardinality":
        min_cardinality, max_cardinality = _bounds(tags[-2:], start)
        tags = tags[:-2]
    if not tags:
        raise _syntax_error(start, f"{text.strip()!r} names no allocation tag, as in {word},{scope},worker")
    return Single(scope, tuple(_tag(tag, start) for tag in tags), min_cardinality, max_cardinality)


def _unknown(word: str) -> str:
    if "=" in word:
        return f"{word!r}: counts and node attributes (name=value) are not supported, only allocation tags"
    near = nearest(word.lower(), _WORDS)
    hint = f" (did you mean {near!r}?)" if near else ""
    return f"{word!r} is none of {', '.join(_WORDS)}{hint}"


def _bounds(texts: list[str], start: int) -> tuple[int, int]:
    if len(texts) < 2 or not all(re.fullmatch(r"[0-9]{1,9}", text) for text in texts):
        problem = "cardinality ends with the least and the most containers, as in cardinality,node,worker,0,1"
        raise _syntax_error(start, problem)
    min_cardinality, max_cardinality = map(int, texts)
    if min_cardinality > max_cardinality:
        raise _syntax_error(start, f"at least {min_cardinality} and at most {max_cardinality} containers cannot be")
    return min_cardinality, max_cardinality


def _tag(text: str, start: int) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not slash:
        return SELF, text
    if namespace not in NAMESPACES or not name or "/" in name:
        raise _syntax_error(
            start, f"{text!r}: before a tag may stand {', '.join(f'{each}/' for each in NAMESPACES)} alone"
        )
    return namespace, name


def _syntax_error(at: int, problem: str) -> ValueError:
    return ValueError(f"{problem} (at character {at + 1})")
