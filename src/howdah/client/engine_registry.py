"""Finds the engine by its name or by a job's id: among our own engines first, then by entry point."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from howdah.config.extras import how_to_install
from howdah.config.settings import Settings, resolve, variable_of
from howdah.engines import Engine
from howdah.engines.info import GROUP, EngineInfo, find
from howdah.errors import SpecError
from howdah.spec import plugins
from howdah.spec.message import Sentence, message
from howdah.spec.validation import nearest


def settings_for(flags: Mapping[str, str | None], engines: Iterable[str] = ()) -> Settings:
    """Return the settings with these flags and this process's environment, including the settings of `engines`."""
    return resolve(flags, os.environ, engines)


def hidden_engine(flags: Mapping[str, str | None], settings: Settings) -> Iterator[Sentence]:
    """Yield a sentence if the profile that `flags` choose has another engine than HOWDAH_ENGINE, which overrides it.
    `settings` are those with these flags."""
    variable = variable_of("engine")
    if not flags.get("profile") or settings.sources["engine"] != f"environment {variable}":
        return
    without = resolve(flags, {name: value for name, value in os.environ.items() if name != variable})
    chosen, source = without["engine"], without.sources["engine"]
    if chosen != settings["engine"] and source.endswith(f", profile {settings.profile}"):
        template = "the job runs on {engine}, because of {variable}; the profile {profile} has {chosen}"
        values = {"engine": settings["engine"], "variable": variable, "profile": settings.profile, "chosen": chosen}
        yield message(template, **values)


def engine(settings: Settings) -> Engine:
    """Return the engine that `settings` name.

    Raises:
        SpecError: no engine has that name, a package that it needs is not installed, or a setting misleads it.
    """
    name = settings["engine"]
    info = engine_info(name)
    try:
        cls = plugins.load(info.engine)
    except ModuleNotFoundError as error:
        if not info.extra or (error.name or "").startswith("howdah"):
            raise
        raise SpecError.at("engine", f"{name!r} needs {error.name}; {how_to_install(info.extra)}") from error
    try:
        made: Engine = cls(settings.values)
    except SpecError as error:
        found = [each if each.origin else each.with_origin(settings.sources) for each in error.mistakes]
        raise SpecError(found) from error
    return made


def engine_info(name: str) -> EngineInfo:
    """Return the description of the engine of this name.

    Raises:
        SpecError: no engine has that name.
    """
    info = find(name)
    if info is None:
        names = sorted(plugins.names(GROUP))
        raise SpecError.at("engine", f"is {name!r}, known are {', '.join(names)}", nearest(name, names))
    return info
