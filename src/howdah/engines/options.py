"""Reads an engine's own settings and the options that a job gives it, as values that the engine can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from howdah.engines.info import find
from howdah.spec import JobSpec
from howdah.spec.setting import typed


def engine_options(job: JobSpec, settings: Mapping[str, str], engine: str) -> dict[str, Any]:
    """Return the values of all options and own settings of an engine, by their names without the engine's, each with
    the type of its kind (`howdah.spec.setting.typed`).

    The job's option comes first, then the setting, then the default. `settings` are all settings by their full names,
    as an engine gets them and as `StagedJob.settings` has them.
    """
    info = find(engine)
    if info is None:
        return {}
    of_job, values = job.engines.get(engine, {}), {}
    for name, setting in {**info.settings, **info.options}.items():
        default = setting.default
        if name in info.settings:
            default = settings.get(f"{engine}.{name}") or info.settings[name].default or default
        values[name] = typed(setting, of_job.get(name, default))
    return values
