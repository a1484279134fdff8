"""Describes a job's tasks as Slurm sees them: shapes of containers, and the number of each that the gang needs at once.

One allocation holds the whole gang. If all containers are alike it is a plain job, else a heterogeneous one with a
component for each shape. Slurm 22.05 puts no two components on one node, and starts such jobs only by backfill.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

from howdah.engines.batch_places import HeldContainer, Place, places_at_once
from howdah.engines.slurm.commands import SlurmCommands, tasks_per_node
from howdah.spec import JobSpec
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class ContainerShape:
    """The resources of one container, and the nodes on which it may be."""

    memory_mib: int
    """The memory that the container has, in MiB."""
    vcores: int
    """The CPUs that the container has."""
    gpus: int = 0
    """The GPUs that the container has, of any type."""
    named: tuple[tuple[str, int], ...] = ()
    """Other generic resources of the node, by name."""
    label: str = ""
    """The feature that the node must have."""
    spread: bool = False
    """Whether each container is on a node of its own."""
    avoid: tuple[str, ...] = ()
    """Nodes never to use."""

    def step_options(self) -> list[str]:
        """Return options of srun for a step in one container."""
        wanted = ",".join(f"{name}:{count}" for name, count in [("gpu", self.gpus), *self.named] if count)
        return [*self._size(), f"--gres={wanted or 'none'}"]

    def job_options(self, count: int, features: str = "") -> list[str]:
        """Return options of sbatch for `count` containers on nodes that also have these features. Slurm counts generic
        resources other than GPUs by node, so containers with such resources are alone on their nodes."""
        wanted = "&".join(filter(None, (self.label, features)))
        named = ",".join(f"{name}:{amount}" for name, amount in self.named if amount)
        return [
            f"--ntasks={count}",
            *self._size(),
            *([f"--gpus-per-task={self.gpus}"] if self.gpus else []),
            *([f"--gres={named}"] if named else []),
            *([f"--nodes={count}", "--ntasks-per-node=1"] if self.spread or named else []),
            *([f"--constraint={wanted}"] if wanted else []),
            *([f"--exclude={','.join(self.avoid)}"] if self.avoid else []),
        ]

    def _size(self) -> list[str]:
        return [f"--cpus-per-task={self.vcores}", f"--mem-per-cpu={math.ceil(self.memory_mib / self.vcores)}M"]


SlurmPlace = Place[ContainerShape]
SlurmContainer = HeldContainer[ContainerShape]


def shape_of(job: JobSpec, role: str, memory_mib: int = 0) -> ContainerShape:
    """Return the shape of a role's containers, with another memory if `memory_mib` is given."""
    spec, wanted = job.roles[role], job.roles[role].resources
    amounts = wanted.vcores, wanted.gpus, tuple(sorted(wanted.named.items()))
    where = spec.node_label or job.node_label, spec.placement.spread, spec.placement.avoid
    return ContainerShape(memory_mib or wanted.memory_mib, *amounts, *where)


def components(job: JobSpec) -> dict[ContainerShape, int]:
    """Return the number of containers of each shape in the job's own allocation. Without a gang that is the first
    task's container, and an array brings the rest."""
    return places_at_once(job, shape_of) if job.gang else {shape_of(job, next(iter(job.waves))[0]): 1}


def own_places(slurm: SlurmCommands, parts: Iterable[ContainerShape]) -> list[SlurmPlace]:
    """Return the places of this process's job, from the variables of its batch step."""
    size = int(os.environ.get("SLURM_HET_SIZE", "0"))
    number, found = os.environ["SLURM_JOB_ID"], []
    for group, shape in enumerate(list(parts)[: size or 1]):
        suffix = f"_HET_GROUP_{group}" if size else ""
        nodes = slurm.hosts(os.environ[f"SLURM_JOB_NODELIST{suffix}"])
        counts = tasks_per_node(os.environ[f"SLURM_TASKS_PER_NODE{suffix}"])
        for node, count in zip(nodes, counts, strict=True):
            found += [Place(number, node, shape, str(group) if size else "") for _ in range(count)]
    return found


def queue_options(job: JobSpec, options: dict[str, Any]) -> list[str]:
    """Return options of sbatch that put a job into the queue of this job, with its account, reservation and
    priority."""
    return [
        *([f"--partition={job.queue}"] if job.queue else []),
        *(f"--{name}={options[name]}" for name in ("account", "qos", "reservation") if options[name]),
        *([f"--nice={-job.priority}"] if job.priority is not None else []),
    ]
