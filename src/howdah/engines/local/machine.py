"""The resources that this machine offers, and the check whether a gang can ever fit.

Memory is offered in its real amount, and never promised twice. Cores are shares, as on YARN, where a vcore pins
nothing: training programs wait for each other and for data, so twice the cores are offered, and at least four, which
lets a laptop run a small gang. A GPU belongs to one container at a time.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from howdah.errors import SpecError
from howdah.spec import JobSpec
from howdah.spec.units import format_memory
from howdah.spec.values import dataclass

OVERCOMMIT = 2
MIN_VCORES = 4
_VARIABLES = {"memory": "MEMORY_MIB", "vcores": "VCORES", "GPUs": "GPUS"}


@dataclass(frozen=True)
class Machine:
    """The resources of this machine."""

    vcores: int
    """The number of vcores that all containers may ask for together."""
    memory_mib: int
    """The memory that all containers may ask for together."""
    gpus: tuple[str, ...] = ()
    """The names of its GPUs in the form of CUDA_VISIBLE_DEVICES."""

    @classmethod
    def detect(cls, environment: Mapping[str, str] = os.environ) -> Machine:
        """Return the resources of this machine. HOWDAH_LOCAL_VCORES, HOWDAH_LOCAL_MEMORY_MIB and HOWDAH_LOCAL_GPUS (a
        number) override them.

        Raises:
            SpecError: one of them is no number: what it was to limit would be offered whole.
        """
        cores = len(os.sched_getaffinity(0))
        vcores = _amount_from_environment(environment, "VCORES") or max(OVERCOMMIT * cores, MIN_VCORES)
        return cls(vcores, _amount_from_environment(environment, "MEMORY_MIB") or _memory_mib(), _gpus(environment))


@dataclass(frozen=True)
class ResourceDemand:
    """The amount that a job needs of one kind of resource, and the amount that this machine has."""

    what: str
    """`memory`, `vcores` or `GPUs`."""
    parts: tuple[tuple[str, int, int], ...]
    """(role, number of containers, amount for each container)."""
    offered: int
    """The amount that this machine has."""

    @property
    def wanted(self) -> int:
        """Return the amount that all containers need together."""
        return sum(count * each for _, count, each in self.parts)

    def __str__(self) -> str:
        parts = [f"{count} × {self.amount(each)} ({role})" for role, count, each in self.parts if each]
        needs = f"needs {' + '.join(parts)} = {self.amount(self.wanted)}"
        variable = _VARIABLES[self.what]
        return f"{needs}, this machine has {self.amount(self.offered)} (HOWDAH_LOCAL_{variable} sets another limit)"

    def amount(self, number: int) -> str:
        """Return an amount with its unit."""
        return format_memory(number) if self.what == "memory" else f"{number} {self.what}"


def refusals(job: JobSpec, machine: Machine) -> Iterator[str]:
    """Yield why the job can never run on this machine, one line for each kind of resource; nothing if it can."""
    for figure in largest_demand(job, machine):
        if figure.wanted > figure.offered:
            yield str(figure)
    for name, role in job.roles.items():
        for resource, wanted in role.resources.named.items():
            if wanted:
                yield f"role {name!r} wants {wanted} {resource!r}, a resource this machine does not know"


def largest_demand(job: JobSpec, machine: Machine) -> tuple[ResourceDemand, ...]:
    """Return the largest demand at one time: that of the largest stage of the gang, or without a gang that of the
    largest task."""
    if job.gang:
        parts = [replace(job, roles={name: job.roles[name] for name in wave}) for wave in job.waves]
    else:
        parts = [replace(job, roles={name: replace(role, replicas=1)}) for name, role in job.roles.items()]
    by_kind = zip(*(demands(part, machine) for part in parts), strict=True)
    return tuple(max(kind, key=lambda figure: figure.wanted) for kind in by_kind)


def first_demand(job: JobSpec) -> tuple[int, int, int]:
    """Return the first demand of the job, in MiB of memory, vcores and GPUs: that of the first stage of the gang, or
    without a gang that of one task."""
    first = [job.roles[name] for name in job.waves[0]]
    asked = [(role.resources, role.replicas) for role in first] if job.gang else [(first[0].resources, 1)]
    return (
        sum(count * each.memory_mib for each, count in asked),
        sum(count * each.vcores for each, count in asked),
        sum(count * each.gpus for each, count in asked),
    )


def demands(job: JobSpec, machine: Machine) -> tuple[ResourceDemand, ...]:
    """Return the demand of the whole gang, because a gang is granted whole."""

    def parts(of: str) -> tuple[tuple[str, int, int], ...]:
        return tuple((name, role.replicas, getattr(role.resources, of)) for name, role in job.roles.items())

    return (
        ResourceDemand("memory", parts("memory_mib"), machine.memory_mib),
        ResourceDemand("vcores", parts("vcores"), machine.vcores),
        ResourceDemand("GPUs", parts("gpus"), len(machine.gpus)),
    )


def _amount_from_environment(environment: Mapping[str, str], name: str) -> int | None:
    """Return the amount in a variable; None if the variable is not set or empty."""
    variable = f"HOWDAH_LOCAL_{name}"
    text = environment.get(variable, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise SpecError.at(variable, f"is {text!r}, must be a whole number")
    return int(text)


def _memory_mib() -> int:
    match = re.search(r"^MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    physical = int(match.group(1)) * 1024 if match else 0
    limits = [limit for limit in _group_limits() if limit]
    return min([physical, *limits]) >> 20


def _group_limits() -> Iterator[int]:
    """Yield the memory limits of the control groups of this process, for a system that is itself a container. The group
    of a task is ignored: a job that a task submits has its own share of the machine."""
    task = f"howdah-{os.environ.get('HOWDAH_CONTAINER')}"
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        version1 = "memory" in controllers.split(",")
        if not version1 and controllers:
            continue
        root = Path("/sys/fs/cgroup/memory" if version1 else "/sys/fs/cgroup")
        own = root / path.lstrip("/")
        for directory in (own, *(parent for parent in own.parents if parent.is_relative_to(root))):
            if directory.name == task:
                continue
            file = directory / ("memory.limit_in_bytes" if version1 else "memory.max")
            text = file.read_text(encoding="ascii").strip() if file.is_file() else ""
            yield int(text) if text.isdigit() else 0


def _gpus(environment: Mapping[str, str]) -> tuple[str, ...]:
    told = _amount_from_environment(environment, "GPUS")
    if told is not None:
        return tuple(map(str, range(told)))
    if "CUDA_VISIBLE_DEVICES" in environment:
        return _visible_gpus(environment["CUDA_VISIBLE_DEVICES"])
    found = (re.fullmatch(r"nvidia(\d+)", entry.name) for entry in Path("/dev").iterdir())
    return tuple(sorted((match.group(1) for match in found if match), key=int))


def _visible_gpus(text: str) -> tuple[str, ...]:
    """Return the devices that CUDA sees: those before the first invalid one, such as -1, each once."""
    names = itertools.takewhile(re.compile(r"\d+|(GPU|MIG)-.+").fullmatch, map(str.strip, text.split(",")))
    return tuple(dict.fromkeys(names))
