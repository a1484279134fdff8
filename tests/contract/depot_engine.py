"""An engine of another package, with its own settings and options. It runs jobs as this machine's engine does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.engines import Launch
from howdah.engines.info import EngineInfo
from howdah.engines.local.allocator import LocalAllocator
from howdah.engines.local.engine import LocalEngine
from howdah.engines.options import engine_options
from howdah.spec import Container, JobReport, Plan, StagedJob
from howdah.spec.setting import Setting

if TYPE_CHECKING:
    import pytest


class DepotEngine(LocalEngine):
    """A cluster is the directory `depot.conf_dir`, in which its jobs are. Plans say which options the engine sees."""

    name = "depot"

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__({**settings, "local_home": settings.get("depot.conf_dir", "")})

    def plan(self, job: StagedJob) -> Plan:
        plan = super().plan(job)
        return dataclasses.replace(
            plan, request={**plan.request, "options": engine_options(job.job, self._settings, self.name)}
        )

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        found = super().describe(job_id and job_id.replace("depot-", "local-"))
        return [
            dataclasses.replace(report, id=report.id.replace("local-", "depot-"), engine=self.name) for report in found
        ]


class DepotAllocator(LocalAllocator):
    """Programs see in DEPOT which options the allocator sees."""

    async def launch(self, container: Container, launch: Launch) -> None:
        staged = self._context.staged
        options = json.dumps(engine_options(staged.job, staged.settings, "depot"), sort_keys=True)
        environment = {**launch.environment, "DEPOT": options}
        await super().launch(container, dataclasses.replace(launch, environment=environment))


INFO = EngineInfo(
    engine="depot_engine:DepotEngine",
    allocator="depot_engine:DepotAllocator",
    id_prefix="depot-",
    is_configured=lambda settings: bool(settings["depot.conf_dir"]),
    settings={
        "account": Setting("", "Account that is charged."),
        "conf_dir": Setting("", "Directory with the cluster's configuration.", "path"),
        "log-memory": Setting("64MiB", "Memory for logs.", "memory"),
    },
    options={
        "account": Setting("", "Account that is charged."),
        "qos": Setting("normal", "Quality of service.", choices=("low", "normal", "high")),
        "nodes": Setting("", "Most nodes.", "whole"),
        "exclude": Setting("", "Nodes that the job does not use.", "list"),
        "wait": Setting("1h", "How long the job may wait.", "duration"),
        "shared": Setting("false", "Whether nodes are shared.", "flag"),
        "template": Setting("", "File with more options.", "path"),
    },
)


def install(directory: Path) -> None:
    """Make `directory` a place from which Python imports this engine like that of an installed package."""
    about = directory / "depot_engine-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: depot-engine\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[howdah.engines]\ndepot = depot_engine:INFO\n")
    (directory / "depot_engine.py").write_text(Path(__file__).read_text(encoding="utf-8"))


def use_home(directory: Path, environment: pytest.MonkeyPatch) -> None:
    """Give this process a home without a configuration below `directory`, and install this engine as another package's.
    Messages are English."""
    install(directory / "site")
    environment.syspath_prepend(str(directory / "site"))
    environment.setenv("HOWDAH_HOME", str(directory / "home"))
    environment.setenv("HOWDAH_LANGUAGE", "en")
    for name in ("HADOOP_CONF_DIR", "HOWDAH_DEPOT_ACCOUNT", "HOWDAH_ENGINE", "HOWDAH_PROFILE", "HOWDAH_HISTORY_URL"):
        environment.delenv(name, raising=False)
