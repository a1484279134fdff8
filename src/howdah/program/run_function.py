"""`python -m howdah.program.run_function DIRECTORY` runs in a task: it calls the function in DIRECTORY, and keeps its
result or its error for the client that has sent it (`howdah.functions`)."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Iterable, List, Mapping, Optional, Tuple

from howdah import program
from howdah.wire.program_protocol import FUNCTION_RESULTS

FUNCTION, ABOUT, MODULES = "function.pickle", "about.json", "modules"
RESULT, ERROR = "result.pickle", "error.pickle"
FIRST_TASK, ALL_TASKS = "first", "all"
"""The tasks whose results are kept: the first one, or all."""
_PICKLER = "cloudpickle"


def main() -> None:
    """Call the function; end with its result or its error."""
    call_packed(Path(sys.argv[1]))


def call_packed(directory: Path) -> None:
    """Call the function in `directory`. Keep its error, or its result if this is one of the tasks whose results are
    wanted, in FUNCTION_RESULTS."""
    directory, results = directory.absolute(), Path(FUNCTION_RESULTS).absolute()
    about = json.loads((directory / ABOUT).read_text("utf-8"))
    _check_version(about["python"])
    for name, text in about["sources"].items():  # which tracebacks show
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    sys.path.insert(0, str(directory))
    importlib.import_module(_PICKLER)  # the version that has written the function, not that of the environment
    sys.path[0] = str(directory / MODULES)
    results.mkdir(exist_ok=True)
    try:
        with (directory / FUNCTION).open("rb") as file:
            function, args, kwargs = pickle.load(file)  # noqa: S301 - written by the user who has submitted the job
        value = _call(function, args, kwargs)
        if about["results"] == ALL_TASKS or _is_first_task():
            part = results / f"{RESULT}.part"  # a task that is stopped while it writes has no result
            part.write_bytes(_packed(value))
            part.replace(results / RESULT)
    except Exception as error:
        (results / ERROR).write_bytes(_packed_error(error))
        raise


def call_each(function: Callable[[Any], Any], items: Iterable[Any]) -> List[Tuple[int, Any]]:
    """Return the results of this task's share of `items`, each with the number of its item. The result is None for an
    item at which the function ends by `sys.exit()`, as in `howdah.run`."""
    # Each is a world of its own, of rank 0: these tasks do not wait for each other.
    index, tasks = int(os.environ["HOWDAH_INDEX"]), int(os.environ["HOWDAH_REPLICAS"])
    return [(number, _call(function, (item,), {})) for number, item in list(enumerate(items))[index::tasks]]


def _call(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except SystemExit as error:
        if error.code in (None, 0):
            return None
        raise


def _is_first_task() -> bool:
    return program.rank == 0 and program.index == 0


def _check_version(sent_by: List[int]) -> None:
    if sent_by != list(sys.version_info[:2]):
        theirs, ours = ".".join(map(str, sent_by)), ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"howdah: the function comes from Python {theirs}, and this task has Python {ours} ({sys.executable}):"
            f" give the job an environment with Python {theirs} (environment=)"
        )


def _packed(value: Any) -> bytes:
    try:
        return bytes(importlib.import_module(_PICKLER).dumps(value))
    except Exception as error:
        raise TypeError(f"what the function returned ({type(value).__name__}) cannot be sent back: {error}") from error


def _packed_error(error: Exception) -> bytes:
    """Return the error itself, if it can be sent, with its traceback as text."""
    packed: Optional[bytes] = None
    try:
        packed = _packed(error)
        pickle.loads(packed)  # noqa: S301 - its own; some can be written, and not be read
    except Exception:
        packed = None
    about = {
        "task": program.task,
        "error": packed,
        "text": "".join(traceback.format_exception_only(type(error), error)).strip(),
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__)),
    }
    return pickle.dumps(about)


if __name__ == "__main__":
    main()
