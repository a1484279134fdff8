"""`dataclass` replaces the standard decorator for values: it makes a class twenty times as fast, and a value seven.

The standard decorator compiles six functions for each class: 60 ms for the hundred and more classes of a master, a
seventh of what a job that does nothing takes. This one shares the functions that compare, hash and show a value among
all classes, and compiles the `__init__` of a class when its first value is made: a process makes values of few of the
classes that it imports. It leaves `frozen` to the type checker: enforced at run time, it makes a new value of twenty
fields cost 1.7 µs instead of 0.25. Tests set HOWDAH_ENFORCE_FROZEN=1 and so enforce `frozen` in all their processes.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
from typing import TYPE_CHECKING, Any, Callable, Tuple

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    _ENFORCE_FROZEN = os.environ.get("HOWDAH_ENFORCE_FROZEN") == "1"

    def dataclass(cls: Any = None, *, frozen: bool = False, **options: bool) -> Any:
        """Make a dataclass whose comparison and repr use all of its fields; see `dataclasses.dataclass`.

        The one other option that it takes is `kw_only`, from Python 3.10 on.
        """
        if cls is None:
            return functools.partial(dataclass, frozen=frozen, **options)
        frozen_here = frozen and _ENFORCE_FROZEN
        cls.__eq__, cls.__repr__ = _equal, _show
        cls.__hash__ = _hash if frozen else None
        made = dataclasses.dataclass(cls, init=False, eq=False, repr=False, frozen=frozen_here, **options)
        if "__init__" not in vars(made):
            made.__init__ = _compiled_at_first_use(made, frozen_here)
        return made


def _compiled_at_first_use(cls: Any, frozen: bool) -> Any:
    """Return an `__init__` that replaces itself by that of the standard decorator when it is first called."""

    def compile_first(self: Any, *args: Any, **given: Any) -> None:
        fields = [(field.name, field.type, field) for field in dataclasses.fields(cls)]
        known = {name: getattr(cls, name) for name in ("__doc__", "__post_init__") if hasattr(cls, name)}
        like = dataclasses.make_dataclass(cls.__name__, fields, namespace=known, eq=False, repr=False, frozen=frozen)
        cls.__init__ = vars(like)["__init__"]
        cls.__init__(self, *args, **given)

    return compile_first


def _equal(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self))
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(value: Any) -> Any:
    cls: Any = type(value)
    return _reader(cls)(value)


@functools.cache
def _reader(cls: Any) -> Callable[[Any], Any]:
    """Return a function that reads all fields of a `cls` at once."""
    names: Tuple[str, ...] = tuple(field.name for field in dataclasses.fields(cls))
    return operator.attrgetter(*names) if names else lambda _: ()
