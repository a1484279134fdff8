"""Describes engines without importing their code, which may need libraries that are not installed.

An entry point of the group `howdah.engines` names an `EngineInfo`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from howdah.spec import plugins
from howdah.spec.setting import Setting
from howdah.spec.values import dataclass

GROUP = "howdah.engines"


@dataclass(frozen=True)
class EngineInfo:
    """Says where the parts of an engine are, and how its jobs are recognised."""

    engine: str
    """The `module:class` of its Engine."""
    allocator: str
    """The `module:class` of its Allocator."""
    id_prefix: str
    """The prefix of the ids of its jobs, and of no other engine's: `slurm-`."""
    is_configured: Callable[[Mapping[str, str]], bool]
    """Returns whether these settings, or this machine, lead to a cluster of this kind. It asks no cluster."""
    may_have_jobs: Callable[[Mapping[str, str]], bool] = lambda _: False
    """Returns whether jobs may be found where `is_configured` is false: programs that knew the cluster brought them."""
    how_to_configure: str = ""
    """One line that says what to set if `is_configured` is false."""
    container_id: str = ""
    """A regular expression of its containers' ids; its group `job` is the job's id without `id_prefix`. "" if a
    container's id does not contain the job's."""
    forgets_jobs: bool = False
    """Whether its clusters forget jobs that have ended, but no running job: a job of this user that no cluster knows
    has ended."""
    checks: str = ""
    """The `module:function` of the doctor's checks: called with the settings, it yields `howdah.cli.findings.Finding`.
    A container has neither this module nor its libraries."""
    extra: str = ""
    """The extra of howdah with the libraries that the engine needs beyond howdah's own."""
    extra_modules: tuple[str, ...] = ()
    """The modules whose presence shows the doctor on every machine that `extra` is installed."""
    libraries: tuple[str, ...] = ()
    """The distributions that its allocator needs inside the cluster, beyond howdah itself and the engine's own."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """The engine's own settings by name: its `account` is the setting `slurm.account`. They reach the engine and its
    allocator with all others, under the full name."""
    options: Mapping[str, Setting] = field(default_factory=dict)
    """The options that a job file may give for this engine, by name: its `account` is `engines.slurm.account`. A job's
    option overrides the setting of the same name."""

    def job_of_container(self, container: str) -> str:
        """Return the id of the job that a container of this engine belongs to; "" if the id does not contain it."""
        found = re.fullmatch(self.container_id, container) if self.container_id else None
        return self.id_prefix + found["job"] if found else ""


def find(name: str) -> EngineInfo | None:
    """Return the description of the engine of this name; None if no installed package has one."""
    target = plugins.find(GROUP, name)
    found: EngineInfo | None = plugins.load(target) if target else None
    return found


def known() -> Iterator[tuple[str, EngineInfo]]:
    """Yield the names and descriptions of all installed engines, howdah's own first."""
    for name in plugins.names(GROUP):
        found = find(name)
        if found is not None:
            yield name, found


def name_of_id(job_id: str) -> str:
    """Return the name of the engine that a job's id belongs to; "" for an id of an unknown form."""
    return next((name for name, info in known() if job_id.startswith(info.id_prefix)), "")


def job_of_container(container: str) -> str:
    """Return the id of the job that a container's id belongs to; "" if the id does not contain it."""
    return next(filter(None, (info.job_of_container(container) for _, info in known())), "")
