"""Hints for the next submission, which compare the requested resources of a job with those it used. Pure.

A hint is a template and its values, so that it can be shown in any language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from howdah.spec import State
from howdah.spec.job import Role
from howdah.spec.view import JobView, TaskView

MIN_RUN_S = 60.0
"""Seconds that a program must have run before anything is concluded from its usage."""
MUCH, LITTLE_MIB = 2.0, 1024
"""A request is too large when it exceeds the usage by this factor, and by this much memory."""
IDLE_GPU, WAITS, STARVED = 0.3, 0.3, 0.2
"""Shares: GPU use below which a GPU counts as idle; samples with processes that wait for a disk; time without input."""

MEMORY = "{role}: asked for {asked} GiB of memory a task, used at most {used} GiB"
TIGHT = "{role}: asked for {asked} GiB of memory a task and used {used} GiB: close to the limit"
CPU = "{role}: asked for {asked} cores a task, used {used} on average"
GPU = "{role}: its GPUs were idle {idle} of the time"
DISK = "{role}: its processes waited for a disk in {share} of the samples"
INPUT = "{role}: its programs waited {share} of the time for their input streams"
XID = "{task}: GPU {gpu} reported {count} critical errors, the last with XID {xid}"
ECC = "{task}: GPU {gpu} has {count} uncorrected memory errors"
TEMPLATES = (MEMORY, TIGHT, CPU, GPU, DISK, INPUT, XID, ECC)


class ResourceHint(NamedTuple):
    """Says one thing about a role or task."""

    of: str
    """The role or task."""
    template: str
    """An English sentence with names of `values` in braces."""
    values: dict[str, Any]
    """The values of the sentence."""

    @property
    def text(self) -> str:
        """Return the sentence in English."""
        return self.template.format(**self.values)


def hints(view: JobView) -> Iterator[ResourceHint]:
    """Yield hints about a job that runs or has run for a while: few, the most costly waste first."""
    if view.job is None:
        return
    yield from _gpu_errors(view)
    for name, role in view.job.roles.items():
        tasks = [task for task in view.tasks.values() if task.id.role == name and _running_s(task) >= MIN_RUN_S]
        if tasks:
            yield from _role_hints(name, role, tasks)


def _role_hints(name: str, role: Role, tasks: list[TaskView]) -> Iterator[ResourceHint]:
    means = [task.usage.gpu_mean for task in tasks if task.usage.gpu_mean is not None]
    if means and sum(means) / len(means) < IDLE_GPU:
        yield ResourceHint(name, GPU, {"role": name, "idle": f"{1 - sum(means) / len(means):.0%}"})
    asked, used = role.resources.memory_mib, max(task.usage.peak_mib for task in tasks)
    values = {"role": name, "asked": _gib(asked), "used": _gib(used)}
    if used and asked > MUCH * used and asked - used > LITTLE_MIB:
        yield ResourceHint(name, MEMORY, values)
    elif used > 0.95 * asked and any(task.state is not State.RUNNING for task in tasks):
        yield ResourceHint(name, TIGHT, values)
    cores = max(task.usage.cpu_s / _running_s(task) for task in tasks)
    if cores and role.resources.vcores > MUCH * cores and role.resources.vcores - cores >= 1:
        yield ResourceHint(name, CPU, {"role": name, "asked": role.resources.vcores, "used": f"{cores:.1f}"})
    starved = max(task.usage.starved_s / _running_s(task) for task in tasks)
    if starved > STARVED:
        yield ResourceHint(name, INPUT, {"role": name, "share": f"{min(1.0, starved):.0%}"})
    waits = sum(task.usage.waits for task in tasks) / len(tasks)
    if waits > WAITS:
        yield ResourceHint(name, DISK, {"role": name, "share": f"{waits:.0%}"})


def _gpu_errors(view: JobView) -> Iterator[ResourceHint]:
    for task in view.tasks.values():
        for gpu in task.usage.gpus:
            if gpu.xids:
                values = {"task": str(task.id), "gpu": gpu.id, "count": gpu.xids, "xid": gpu.xid}
                yield ResourceHint(str(task.id), XID, values)
            if gpu.ecc:
                yield ResourceHint(str(task.id), ECC, {"task": str(task.id), "gpu": gpu.id, "count": gpu.ecc})


def _running_s(task: TaskView) -> float:
    """Return the seconds for which the task's program has run, up to the last sample."""
    return max(0.0, task.used - task.started) if task.started else 0.0


def _gib(mib: float) -> str:
    return f"{mib / 1024:.1f}"
