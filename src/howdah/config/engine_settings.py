"""The settings and options of engines. Each engine declares its own, and they are found by the engine's entry point."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, cast

from howdah.errors import Mistake, SpecError
from howdah.spec import JobSpec, plugins
from howdah.spec.message import message
from howdah.spec.setting import Setting, Value, checked
from howdah.spec.validation import nearest

_GROUP = "howdah.engines"


class EngineDeclarations(Protocol):
    """The part of `howdah.engines.info.EngineInfo` that is used here; this package may not import it."""

    settings: Mapping[str, Setting]
    options: Mapping[str, Setting]


def find_engine(name: str) -> EngineDeclarations | None:
    """Return the declarations of the engine of this name; None if no installed package has one."""
    target = plugins.find(_GROUP, name)
    return cast(EngineDeclarations, plugins.load(target)) if target else None


def engine_names() -> list[str]:
    """Return the names of all installed engines, howdah's own first."""
    return plugins.names(_GROUP)


def settings_of_engines(others: Iterable[str] = ()) -> dict[str, Setting]:
    """Return the settings of howdah's own engines and of `others`, by their full names, such as `slurm.account`. Other
    packages are searched only if `others` are given."""
    engines = {name: find_engine(name) for name in (*plugins.BUILT_IN[_GROUP], *others)}
    return {
        f"{engine}.{name}": setting
        for engine, declared in engines.items()
        if declared is not None
        for name, setting in declared.settings.items()
    }


def options_of_own_engines() -> dict[str, Mapping[str, Setting]]:
    """Return the options of howdah's own engines, by the engine's name."""
    engines = {name: find_engine(name) for name in plugins.BUILT_IN[_GROUP]}
    return {name: declared.options for name, declared in engines.items() if declared is not None}


def missing_engines(job: JobSpec) -> Iterator[str]:
    """Yield a sentence for each engine for which the job has options and that is not installed here."""
    for name in job.engines:
        if find_engine(name) is None:
            near = nearest(name, engine_names())
            if near:
                yield message(
                    "engines.{name}: no engine of this name is installed here, so its options were not checked; "
                    "did you mean {near}?",
                    name=name,
                    near=near,
                )
            else:
                yield message(
                    "engines.{name}: no engine of this name is installed here, so its options were not checked",
                    name=name,
                )


def option_mistakes(job: JobSpec, origins: Mapping[str, str] | None = None) -> list[Mistake]:
    """Return everything that is wrong with the options for installed engines."""
    found: list[Mistake] = []
    for engine, options in job.engines.items():
        declared = find_engine(engine)
        if declared is None:
            continue
        for name, value in options.items():
            try:
                _checked_option(engine, declared, name, value, Path())
            except SpecError as error:
                found += error.mistakes
    return [mistake.with_origin(origins or {}) for mistake in found]


def with_checked_options(job: JobSpec, engine: str, base_directory: Path) -> JobSpec:
    """Return the job with its options for `engine` in the form in which settings are kept. Relative paths in them start
    at `base_directory`.

    Raises:
        SpecError: there is no such option, or it cannot have this value.
    """
    declared = find_engine(engine)
    if declared is None or engine not in job.engines:
        return job
    options = {
        name: _checked_option(engine, declared, name, value, base_directory)
        for name, value in job.engines[engine].items()
    }
    return dataclasses.replace(job, engines={**job.engines, engine: options})


def _checked_option(engine: str, declared: EngineDeclarations, name: str, value: Value, base: Path) -> Value:
    place = f"engines.{engine}.{name}"
    if name in declared.options:
        return checked(place, declared.options[name], value, base)
    if name in declared.settings:
        problem = f"is a setting, which a job cannot change: `howdah config set {engine}.{name} VALUE`"
    elif declared.options:
        problem = f"is not an option of the engine {engine}, known are {', '.join(declared.options)}"
    else:
        problem = f"is not an option: the engine {engine} has none"
    raise SpecError.at(place, problem, nearest(name, declared.options))
