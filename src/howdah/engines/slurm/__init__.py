"""Slurm as an engine, called by its own commands: a job is one batch job, whose batch step is the master."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from howdah.engines.info import EngineInfo
from howdah.spec.setting import Setting


def is_configured(settings: Mapping[str, str]) -> bool:
    """Return whether Slurm's commands are here, and a configuration leads to a cluster."""
    if shutil.which("sbatch") is None:
        return False
    from howdah.engines.slurm.commands import find_conf  # most machines have no Slurm

    return bool(find_conf(settings))


_SHARED = {
    "account": Setting("", "Account that is charged."),
    "qos": Setting("", "Quality of service."),
    "constraint": Setting("", "Features that the nodes must have, as sbatch takes them."),
    "reservation": Setting("", "Reservation whose nodes are used."),
}
INFO = EngineInfo(
    engine="howdah.engines.slurm.engine:SlurmEngine",
    allocator="howdah.engines.slurm.allocator:SlurmAllocator",
    id_prefix="slurm-",
    container_id=r"slurm-(?P<job>\d+)\.[^.]+\.\d+",
    forgets_jobs=True,
    is_configured=is_configured,
    how_to_configure="install Slurm's commands, and set SLURM_CONF or `howdah config set slurm.conf FILE`",
    checks="howdah.cli.doctor_slurm:checks",
    settings={"conf": Setting("", "Slurm's configuration, slurm.conf; else SLURM_CONF.", "path"), **_SHARED},
    options={
        **_SHARED,
        "segment": Setting("", "Nodes that come together in one block of the network (topology/block).", "whole"),
        "switches": Setting("", "Most switches between the nodes, and how long to wait for them: 1@30:00."),
        "comment": Setting("", "Comment that Slurm keeps with the job."),
        "time": Setting("", "Time limit of the job; else timeouts.total, else the partition's.", "duration"),
    },
)
