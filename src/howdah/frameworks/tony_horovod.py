"""Horovod as TonY ran it: the rendezvous is in a role `driver`, which the job has itself."""

from __future__ import annotations

from howdah.frameworks import decided
from howdah.frameworks.horovod import RENDEZVOUS, Horovod, by_host, meeting
from howdah.frameworks.tony import TENSORBOARD, Tony
from howdah.spec import JobSpec, TaskId, World

DRIVER = "driver"
_BESIDE = (DRIVER, TENSORBOARD)
_GLOO_TIMEOUT_S = "2000"

__all__ = ["DRIVER", "RENDEZVOUS", "TonyHorovod"]


class TonyHorovod(Tony):
    """Its workers find each other through the driver, which starts with them."""

    hold_ports = Horovod.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        return decided(job, untracked=_BESIDE)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        variables = super().environment(world, task)
        workers = [member for member in world.members if member.task.role not in _BESIDE]
        driver = next(iter(world.of(DRIVER)), None)
        if driver is None or task.role in _BESIDE:
            return variables
        return {
            **variables,
            "CLUSTER_SPEC": ",".join(f"{host}:{len(those)}" for host, those in by_host(workers).items()),
            "HOROVOD_GLOO_TIMEOUT_SECONDS": _GLOO_TIMEOUT_S,
            **meeting(driver, workers, task),
        }
