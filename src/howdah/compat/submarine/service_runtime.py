"""Makes the roles of the runtime of 0.1 and 0.2, a YARN service: the first worker is `master`, and ends the job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from howdah.compat.submarine.options import SubmarineOptions
from howdah.spec import JobSpec

if TYPE_CHECKING:
    from howdah.compat.submarine.launch import Commands

_NATIVE = {"tensorflow": "submarine-tensorflow", "pytorch": "submarine-pytorch"}


def kind(role: str) -> str:
    """Return the kind of task that a role is, as the options call it."""
    return {"master": "worker", "server": "ps"}.get(role, role)


def job(options: SubmarineOptions, commands: Commands) -> JobSpec:
    """Return the job with its roles and its rule for success."""
    roles, count = dict(commands.roles), commands.counts["worker"]
    legacy = options.given("legacy")
    if count:
        worker = roles.pop("worker")
        others = replace(worker, replicas=count - 1, on_failure="ignore" if legacy else "")
        roles = {"master": worker, **({"worker": others} if count > 1 else {}), **roles}
    if "ps" in roles:
        roles["ps"] = replace(roles["ps"], replicas=commands.counts["ps"])
    framework = options.text("framework", "tensorflow").lower()
    independent = not count or (legacy and "ps" not in roles)
    return JobSpec(
        roles=roles,
        name=options.text("name"),
        framework="submarine" if independent else _NATIVE[framework],
        success="chief" if count > 1 else "all",
        queue=options.text("queue"),
    )


def notes(options: SubmarineOptions, job: JobSpec) -> Iterator[str]:
    """Yield notes on what is different here for this job."""
    improved = not options.given("legacy")
    if improved and "worker" in job.roles and "ps" not in job.roles and job.framework.startswith("submarine-"):
        what = "a process group" if job.framework == "submarine-pytorch" else "a cluster with a chief"
        yield f"the workers form {what}; to Submarine they were strangers, as they are with --legacy"
    below = [option for option in options.places if "." in option]
    if below and improved:
        places = ", ".join(options.places[option][0] for option in below)
        yield f"{places}: counts here; Submarine passed over what is below a role: --legacy"
