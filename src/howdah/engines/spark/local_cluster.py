"""Knows what a `local-cluster[WORKERS,CORES,MEMORY]` has room for: Spark lets it never grow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from howdah.engines.spark.properties import DYNAMIC, HEAP_MIB
from howdah.spec import JobSpec

_MASTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
"""The master: how many workers, the cores of each, the memory of each in MiB."""
_SIZES = {"spark.executor.memory", "spark.executor.cores"}


def lacking_room(job: JobSpec, master: str, conf: Sequence[str] = ()) -> Iterator[str]:
    """Yield what keeps the tasks of a gang from running at the same time; nothing of other masters.

    An elastic role counts with its fewest tasks. Memory counts where each task has an executor of its own, not where
    the properties in `conf` (`NAME=VALUE`) describe the executors.
    """
    found = _MASTER.fullmatch(master.strip())
    if found is None or not job.gang:
        return
    workers, cores, memory_mib = map(int, found.groups())
    given = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in conf)}
    has_own = given.get(DYNAMIC, "true") == "true" and not given.keys() & _SIZES
    for wave in job.waves:
        roles = [job.roles[name] for name in wave]
        counts = [role.min_replicas or role.replicas for role in roles]
        wanted = sum(count * role.resources.vcores for count, role in zip(counts, roles, strict=True))
        if wanted > workers * cores:
            yield f"{', '.join(wave)}: {wanted} cores are needed at the same time, and {master} has {workers * cores}"
        elif has_own and sum(counts) > (room := workers * (memory_mib // HEAP_MIB)):
            needs = f"{sum(counts)} executors with heaps of {HEAP_MIB} MiB are needed at the same time"
            yield f"{', '.join(wave)}: {needs}, and {master} has memory for {room}"
