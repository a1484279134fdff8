"""A Python function as a job, on every engine.

    import howdah

    accuracy = howdah.run(train, 0.01, replicas=4, gpus=1, on="yarn", environment={"requirements": "requirements.txt"})

The function travels with the job, as cloudpickle writes it, and what it returns comes back the same way, through the
job's own storage: nothing is unpickled that came from a port (docs/functions.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from howdah.functions.function_job import FunctionCall, run_job
from howdah.functions.packed_function import check_callable
from howdah.functions.results import RemoteTraceback, kept_results
from howdah.program.run_function import ALL_TASKS, FIRST_TASK, call_each

__all__ = ["Distributed", "RemoteTraceback", "distributed", "kept_results", "map_items", "run", "run_all"]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Run = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Any]


def run(function: Callable[..., R], /, *args: Any, on: str = "", profile: str = "", **keys: Any) -> R:
    """Call `function` with `args` in each task of a job, and return what it returns in the first one (rank 0).

    `on` is the engine, and `profile` one of your configuration. `keys` are `replicas`, `gpus`, `vcores` and `memory` of
    a task, and any key of a job file: `environment={"requirements": "requirements.txt"}`, `framework="pytorch"`,
    `retries=2`, `inputs=[…]`. Relative paths start at the current directory. An interrupt cancels the job.

    Raises:
        Exception: what the function has raised first, in whichever task; RemoteTraceback is its cause.
        JobFailed, JobCancelled: the job has ended without it.
        SpecError, StagingError, EngineRejected, EngineUnavailable: the job cannot run; the message says why.
    """
    call = FunctionCall(function, args, {}, FIRST_TASK)
    return run_job(call, on, profile, keys)[0]  # type: ignore[no-any-return]


def run_all(function: Callable[..., R], /, *args: Any, on: str = "", profile: str = "", **keys: Any) -> list[R]:
    """Call `function` as `run` does, and return what it returns in each task, by rank."""
    return run_job(FunctionCall(function, args, {}, ALL_TASKS), on, profile, keys)


def map_items(
    function: Callable[[T], R], items: Iterable[T], *, on: str = "", profile: str = "", **keys: Any
) -> list[R]:
    """Return `function(item)` for each of `items`, in their order.

    A job of `replicas` tasks (one for each item, unless given) calls it; each task begins as soon as there is room for
    it, and has every `replicas`-th item. The result of an item at which the function ends by `sys.exit()` is None. The
    other arguments are those of `run`. If one of them raises, the job fails; what the tasks that had ended returned is
    kept, and the error says how to load it.
    """
    check_callable(function)
    given = list(items)
    if not given:
        return []

    def in_order(shares: list[list[tuple[int, R]]]) -> list[R]:
        found = dict(pair for share in shares for pair in share)
        return [found[number] for number in range(len(given))]

    call = FunctionCall(functools.partial(call_each, function, given), (), {}, ALL_TASKS, in_order)
    return run_job(call, on, profile, {"replicas": len(given), "gang": False, **keys})


class Distributed(Generic[P, R]):
    """A function that runs here when it is called, and as a job by `distributed`; `run` makes the job, of the function
    and its arguments."""

    def __init__(self, function: Callable[P, R], run: Run) -> None:
        self._function, self._run = function, run
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def distributed(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function in each task of a job, and return what it returns in the first one (rank 0)."""
        return self._run(self._function, args, kwargs)  # type: ignore[no-any-return]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bound = self._function.__get__(instance, owner)
        return Distributed(bound, self._run)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial, (self._function,)  # a task has no client


@overload
def distributed(function: Callable[P, R], /) -> Distributed[P, R]: ...


@overload
def distributed(*, on: str = "", profile: str = "", **keys: Any) -> Callable[[Callable[P, R]], Distributed[P, R]]: ...


def distributed(function: Callable[..., Any] | None = None, /, *, on: str = "", profile: str = "", **keys: Any) -> Any:
    """Give a function a method `distributed`, which calls it in a job as `run` does, with the same `keys`."""

    if function is not None:
        check_callable(function)

    def call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return run_job(FunctionCall(function, args, kwargs, FIRST_TASK), on, profile, keys)[0]

    return Distributed(function, call) if function is not None else lambda function: Distributed(function, call)
