"""The checks before programs start: the known checks, those that a job wants, and mistakes in its choice."""

from __future__ import annotations

from typing import Iterator, Tuple

from howdah.errors import Mistake
from howdah.spec.job import JobSpec

LOCAL = ("disk", "memory", "gpu", "matmul")
"""The checks that a container can make alone, in order."""
OF_GPUS = ("gpu", "matmul")
PAIRS = "all-reduce"
CHECKS = (*LOCAL, PAIRS)
ALL = "all"


def checks_of_job(job: JobSpec) -> Tuple[str, ...]:
    """Return the checks of this job, in order."""
    checks = job.preflight.checks
    return tuple(name for name in CHECKS if name in checks or ALL in checks)


def pairs_wanted(job: JobSpec) -> bool:
    """Return whether tasks exchange data with each other; only tasks that start together can do so."""
    return job.gang and PAIRS in checks_of_job(job)


def mistakes(job: JobSpec) -> Iterator[Mistake]:
    """Find what is wrong with `preflight`."""
    spec = job.preflight
    for number, name in enumerate(spec.checks):
        if name not in (*CHECKS, ALL):
            from difflib import get_close_matches  # most jobs name no wrong check

            near = get_close_matches(name, (*CHECKS, ALL), 1)
            allowed = ", ".join((*CHECKS, ALL))
            why = f"is {name!r}, must be one of {allowed}"
            yield Mistake(f"preflight.checks.{number}", why, next(iter(near), None))
        elif name == PAIRS and not job.gang:
            why = "is 'all-reduce', which is for tasks that start together; with `gang: false` each is alone"
            yield Mistake(f"preflight.checks.{number}", why)
    if spec.disk_mib < 0:
        yield Mistake("preflight.disk", f"is {spec.disk_mib} MiB, must be at least 0 MiB")
    if not 1 <= spec.limit_s <= 86400:
        yield Mistake("preflight.limit", f"is {spec.limit_s:g} s, must be 1 s to 86400 s (a day)")
