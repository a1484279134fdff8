"""Finds the engine by its name or by a job's id: among our own engines first, then by entry point."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from howdah.config.extras import how_to_install
from howdah.config.settings import Settings, resolve
from howdah.engines import Engine
from howdah.errors import SpecError
from howdah.spec import plugins
from howdah.spec.validation import nearest

_PREFIXES = {"application_": "yarn", "local-": "local"}


def settings_for(flags: Mapping[str, str | None]) -> Settings:
    """Return the settings with these flags, in this process's environment."""
    return resolve(flags, os.environ)


def engine(settings: Settings) -> Engine:
    """Return the engine that `settings` name.

    Raises:
        SpecError: no engine has that name, or a package that it needs is not installed.
    """
    name = settings["engine"]
    target = plugins.find("howdah.engines", name)
    if not target:
        known = sorted(plugins.names("howdah.engines"))
        raise SpecError.at("engine", f"is {name!r}, known are {', '.join(known)}", nearest(name, known))
    try:
        cls = plugins.load(target)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("howdah"):
            raise
        raise SpecError.at("engine", f"{name!r} needs {error.name}; {how_to_install(name)}") from error
    made: Engine = cls(settings.values)
    return made


def engine_of(job_id: str, profile: str = "") -> Engine:
    """Return the engine that a job's id belongs to; the configured one for an id of an unknown form."""
    name = next((name for prefix, name in _PREFIXES.items() if job_id.startswith(prefix)), None)
    return engine(settings_for({"engine": name, "profile": profile}))


def engines(name: str = "", profile: str = "") -> Iterator[Engine]:
    """Yield the named engine; without a name the local one, and YARN where a cluster is configured."""
    if name:
        yield engine(settings_for({"engine": name, "profile": profile}))
        return
    yield engine(settings_for({"engine": "local", "profile": profile}))
    settings = settings_for({"engine": "yarn", "profile": profile})
    if settings["hadoop_conf_dir"]:
        yield engine(settings)
