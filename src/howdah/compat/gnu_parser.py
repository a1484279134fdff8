"""Parses command lines as commons-cli's GnuParser did for XLearning, TonY and Submarine.

An option has one dash or two. Its value is the next word, unless that is an option itself, or follows a `=`. The
differences between the three commands are in their `OptionTable`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from howdah.errors import Mistake
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class OptionTable:
    """The options of one command."""

    names: Mapping[str, str]
    """The long name of an option by each of its spellings."""
    flags: Collection[str] = ()
    """Options without a value."""
    flags_take_truth: bool = False
    """Whether the word `true` or `false` after a flag belongs to the flag."""
    multi_valued: Collection[str] = ()
    """Options that take every word up to the next option."""
    assignments: Collection[str] = ()
    """The multi-valued options whose second and later words must contain a `=`."""

    def split(self, word: str) -> tuple[str | None, str | None]:
        """Return the long name of the option `word`, and the value after its `=`; (None, None) if it is no option."""
        if not word.startswith("-"):
            return None, None
        name, equals, value = word.lstrip("-").partition("=")
        return self.names.get(name), value if equals else None

    def nearest(self, word: str) -> str | None:
        """Return the option with the most similar name, with its dashes."""
        known = nearest(word.lstrip("-").partition("=")[0], list(dict.fromkeys(self.names.values())))
        return known and f"--{known}"


@dataclass(frozen=True)
class OptionUse:
    """One option of a command line with its values, or one word that belongs to no option."""

    word: str
    """The word as it was typed."""
    name: str | None
    """The option's long name; None: the word is no option."""
    values: tuple[str, ...] = ()
    """The option's values as they were typed, with the quotes that a script left around them."""
    glued: bool = False
    """Whether the value followed a `=`."""


def option_uses(words: list[str], table: OptionTable) -> Iterator[OptionUse]:
    """Yield the options and other words of a command line, and remove them from `words`."""
    while words:
        word = words.pop(0)
        name, glued = table.split(word)
        if name is None or glued is not None:
            yield OptionUse(word, name, () if glued is None else (glued,), glued is not None)
        else:
            yield OptionUse(word, name, tuple(_following_values(name, words, table)))


def _following_values(name: str, words: list[str], table: OptionTable) -> Iterator[str]:
    """Remove the values of the option `name` from the front of `words`."""
    if name in table.flags:
        if table.flags_take_truth and words and words[0].lower() in ("true", "false"):
            yield words.pop(0)
        return
    first = True
    while words and (first or name in table.multi_valued) and table.split(words[0])[0] is None:
        if not first and name in table.assignments and "=" not in words[0]:
            break
        first = False
        yield words.pop(0)


def remove_quotes(value: str) -> str:
    """Remove the quotes that a shell script left around the whole value; `"a" "b"` has quotes of its own."""
    quoted = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in value[1:-1]
    return value[1:-1] if quoted else value


def given_twice(name: str, values: Collection[str]) -> Mistake:
    """Return the mistake of an option that has one value and is given several."""
    return Mistake(f"--{name}", f"is given twice: {', '.join(map(repr, values))}. Keep one")
