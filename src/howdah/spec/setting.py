"""Describes settings, and options that a job file gives to an engine: their possible values and types.

People write every value as text, or as a list. `checked` brings it into one form, `typed` makes a Python value of it.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Tuple, Union

from howdah.errors import Mistake, SpecError
from howdah.spec import port_range, prices
from howdah.spec.units import memory_mib, seconds
from howdah.spec.validation import MAX_NUMBER, nearest
from howdah.spec.values import dataclass

Value = Union[str, Tuple[str, ...]]
"""A value in its stored form: a text, or the texts of a list."""


@dataclass(frozen=True)
class Setting:
    """The description of one setting, or of one option of an engine."""

    default: str
    """The value if nobody sets one; "" for none."""
    help: str
    """One sentence that explains the setting."""
    kind: str = "text"
    """The form of its value: text, path, paths, list, memory, duration, whole, flag, ports or prices."""
    choices: Tuple[str, ...] = ()
    """The only values, if there are any."""


def checked(place: str, setting: Setting, value: Value, base: Path, origin: Optional[str] = None) -> Value:
    """Return `value` in the form in which settings are kept. Relative paths start at `base`; `place` and `origin` say
    where the value comes from.

    Raises:
        SpecError: the setting cannot have this value.
    """
    if isinstance(value, str):
        return _checked_text(place, setting, value, base, origin)
    if setting.kind not in _ITEMS:
        raise SpecError([Mistake(place, "must be a single value", origin=origin)])
    item = dataclasses.replace(setting, kind=_ITEMS[setting.kind])
    return tuple(_checked_text(f"{place}.{n}", item, text, base, origin) for n, text in enumerate(value))


def typed(setting: Setting, value: Value) -> Any:
    """Return a value as the Python type of its kind: a tuple of texts for `paths` and `list`, an int for `whole` and
    `memory` (MiB), a float for `duration` (seconds), a bool for `flag`, a range for `ports`, else a text. An empty
    value becomes None if that type has no empty value."""
    if setting.kind in _ITEMS:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else tuple(value)
    convert = _TYPES.get(setting.kind)
    if convert is None:
        return value
    return convert(str(value)) if value else None


def _checked_text(place: str, setting: Setting, value: str, base: Path, origin: Optional[str]) -> str:
    try:
        value = _FORMS[setting.kind](value.strip(), base) if value.strip() else ""
    except ValueError as error:
        raise SpecError([Mistake(place, f"is {value!r}, {error}", origin=origin)]) from None
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise SpecError([Mistake(place, f"is {value!r}, must be one line of text", origin=origin)])
    for part in value.split(",") if setting.kind in _ITEMS else [value]:
        if setting.choices and part and part not in setting.choices:
            problem = f"is {part!r}, must be one of {', '.join(setting.choices)}"
            raise SpecError([Mistake(place, problem, nearest(part, setting.choices), origin)])
    return value


def _path(text: str, base: Path) -> str:
    return text if "://" in text else os.path.normpath(base / Path(text).expanduser())


def _paths(text: str, base: Path) -> str:
    return ",".join(_path(part.strip(), base) for part in text.split(",") if part.strip())


def _list(text: str, _: Path) -> str:
    return ",".join(part.strip() for part in text.split(",") if part.strip())


def _duration(text: str, _: Path) -> str:
    if seconds(text) < 0:
        raise ValueError("must be a duration, like 30s, 10min, 2h, 1d, or a number of seconds")
    return text


def _whole(text: str, _: Path) -> str:
    if not text.isdecimal():
        raise ValueError("must be a whole number")
    return _bounded(text)


def _bounded(number: str) -> str:
    if len(number) > len(str(MAX_NUMBER)) or int(number) > MAX_NUMBER:
        raise ValueError(f"must be at most {MAX_NUMBER}")
    return number


def _flag(text: str, _: Path) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower()


def _ports(text: str, _: Path) -> str:
    port_range.ports(text)
    return text


def _prices(text: str, _: Path) -> str:
    prices.parse(text)
    return text


_ITEMS = {"paths": "path", "list": "text"}
"""The kinds that take several values (a list, or a text with commas between them), with the kind of each value."""
_FORMS: Mapping[str, Callable[[str, Path], str]] = {
    "text": lambda text, _: text,
    "path": _path,
    "paths": _paths,
    "list": _list,
    "memory": lambda text, _: _bounded(str(memory_mib(text))),
    "duration": _duration,
    "whole": _whole,
    "flag": _flag,
    "ports": _ports,
    "prices": _prices,
}
_TYPES: Mapping[str, Callable[[str], Any]] = {
    "memory": memory_mib,
    "duration": seconds,
    "whole": int,
    "flag": lambda text: text.lower() == "true",
    "ports": port_range.ports,
}
