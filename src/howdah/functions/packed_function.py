"""Writes a function and the variables that it closes over into a directory for a job."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
import linecache
import os
import shutil
import sys
import sysconfig
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import cloudpickle

from howdah.errors import SpecError
from howdah.program.run_function import ABOUT, FUNCTION, MODULES

_INSTALLED = {"site-packages", "dist-packages"}
_MAX_DEPTH = 10
_NO_FILE = "<dynamic-code>"
"""The placeholder that cloudpickle writes for the name of a file."""
Named = Iterator[tuple[str, Any]]


def check_callable(function: object) -> None:
    """Do nothing if tasks can call this.

    Raises:
        SpecError: they can't.
    """
    if not callable(function):
        kind = type(function).__qualname__
        raise SpecError.at("function", f"is of the type {kind}, must be a function: give its arguments after it")


def pack_function(
    directory: Path, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], results: str
) -> None:
    """Write the call of `function` into `directory`, with cloudpickle, which reads it in the task, and with the modules
    beside the program. `results` says whose results are kept (`howdah.program.run_function`).

    Raises:
        SpecError: it can't be called, or not be pickled; the message names the variable.
    """
    check_callable(function)
    content, sources = _dump((function, tuple(args), dict(kwargs)), function, args, kwargs)
    (directory / FUNCTION).write_bytes(content)
    about = {"python": list(sys.version_info[:2]), "results": results, "sources": sources}
    (directory / ABOUT).write_text(json.dumps(about), "utf-8")
    package = Path(cloudpickle.__file__).parent
    shutil.copytree(package, directory / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, module in modules_beside_program().items():
        parts = [*name.split("."), "__init__"] if hasattr(module, "__path__") else name.split(".")
        target = directory.joinpath(MODULES, *parts).with_suffix(".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(module.__file__), target)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes into the code of each function the name of its source file, and collects the texts of these files. So a
    traceback in the task shows lines of the program or of the notebook's cell."""

    def __init__(self, file: io.BytesIO) -> None:
        self.sources: dict[str, str] = {}
        self.dispatch_table = ChainMap({CodeType: self._reduce_code}, cloudpickle.Pickler.dispatch_table)
        super().__init__(file)

    def _reduce_code(self, code: CodeType) -> tuple[Any, ...]:
        if lines := linecache.getlines(code.co_filename):
            self.sources[code.co_filename] = "".join(lines)
        make, args, *_ = cloudpickle.Pickler.dispatch_table[CodeType](code)
        return make, tuple(code.co_filename if each == _NO_FILE else each for each in args)


def _dump(
    content: Any, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[bytes, Mapping[str, str]]:
    """Return the bytes that cloudpickle writes, and the texts of the source files of the functions in them."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        pickler.dump(content)
        return buffer.getvalue(), pickler.sources
    except Exception as error:
        named = [("the function", function), *_arguments(args, kwargs)]
        culprits = (_find_culprit(what, value) for what, value in named)
        found = next(filter(None, culprits), f"it cannot be pickled: {error}")
        raise SpecError.at("function", f"cannot be sent: {found}".splitlines()[0]) from error


def modules_beside_program() -> dict[str, ModuleType]:
    """Return, by name, the loaded modules that are the user's own files, beside his program or below the current
    directory: they are not installed, so no task could import them."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    near = [Path.cwd(), *([Path(program).resolve().parent] if program else [])]
    paths = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), sys.prefix, sys.base_prefix)
    installed = [Path(path).resolve() for path in paths if Path(path) != Path("/usr")]
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.partition(".")[0] in ("__main__", "__mp_main__", "howdah") or not file.endswith(".py"):
            continue
        # A link beside the program belongs to the program, wherever it leads; a link to installed code does not.
        imported, path = Path(os.path.normpath(Path(file).absolute())), Path(file).resolve()
        is_installed = _INSTALLED & set(path.parts) or any(path.is_relative_to(each) for each in installed)
        if not is_installed and any(each.is_relative_to(directory) for directory in near for each in (imported, path)):
            found[name] = module
    return found


def _find_culprit(what: str, value: Any, depth: int = 0) -> str:
    """Return a sentence about the innermost value that can't be pickled; "" if all can."""
    try:
        cloudpickle.dumps(value)
    except Exception as error:
        inner = _values_inside(value) if depth < _MAX_DEPTH else ()
        found = (_find_culprit(name, each, depth + 1) for name, each in inner)
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        return next(filter(None, found), f"{what} is a {kind}, which cannot be pickled: {error}")
    return ""


def _values_inside(value: Any) -> Named:
    if isinstance(value, functools.partial):
        yield "the function", value.func
        yield from _arguments(value.args, value.keywords)
    elif isinstance(value, (tuple, list)):
        yield from _arguments(value, {})
    elif isinstance(value, dict):
        yield from _arguments((), value)
    elif inspect.isfunction(value):
        with contextlib.suppress(ValueError):  # one of its variables has no value yet
            used = inspect.getclosurevars(value)
            yield from ((f"its variable {name!r}", each) for name, each in {**used.globals, **used.nonlocals}.items())


def _arguments(args: Sequence[Any], kwargs: Mapping[Any, Any]) -> Named:
    yield from ((f"argument {number}", value) for number, value in enumerate(args, 1))
    yield from ((f"argument {name!r}", value) for name, value in kwargs.items())
