"""Makes the jobs that run in a Spark application which is there already."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext, cloudpickle

from howdah.engines.spark.properties import DYNAMIC
from howdah.spark.feeding_task import Programs
from howdah.spark.node_context import FEED_PORT
from howdah.spec import Environment, JobSpec, Resources, Role

FUNCTION_FILE = "function.pickle"
_PASSED_ON = (
    DYNAMIC,
    "spark.speculation",
    "spark.task.cpus",
    "spark.task.resource.gpu.amount",
    "spark.executor.memory",
)
_NOBODYS_HOMES = ("", "/home")
Function = Callable[..., Any]


def function_job(
    context: SparkContext,
    function: Function,
    arguments: Sequence[Any],
    roles: Mapping[str, int | Role] | int,
    programs: Programs,
    directory: Path,
) -> JobSpec:
    """Return the job that calls a function on each node; the function is written into `directory`."""
    content = (programs.cluster, programs.key, function, tuple(arguments))
    (directory / FUNCTION_FILE).write_bytes(cloudpickle.dumps(content))
    wanted = {"worker": roles} if isinstance(roles, int) else roles
    plain = Role(resources=Resources(vcores=int(context.getConf().get("spark.task.cpus", "1"))))
    made = {name: role if isinstance(role, Role) else replace(plain, replicas=role) for name, role in wanted.items()}
    return JobSpec(made, files=(str(directory / FUNCTION_FILE),))


def with_command(job: JobSpec, context: SparkContext) -> JobSpec:
    """Return the job with the command that calls the function: by the Python of the job's environment, else by that of
    Spark's own workers."""
    python = "python" if job.environment != Environment() else context.pythonExec
    command = (python, "-m", "howdah.spark.run_function", FUNCTION_FILE)
    return replace(job, roles={name: replace(role, command=command) for name, role in job.roles.items()})


def keep_state_in_container(context: SparkContext, environment: MutableMapping[str, str]) -> None:
    """Let a driver in a container of the cluster (deploy mode `cluster`) keep howdah's state and cache in its working
    directory, which goes with the container, where it has no home of its own to write to: YARN says `/home/`. Settings
    are read where they would be without."""
    if context.getConf().get("spark.submit.deployMode") != "cluster" or environment.get("HOWDAH_HOME"):
        return
    home = environment.get("HOME", "")
    if home.rstrip("/") in _NOBODYS_HOMES or not os.access(home, os.W_OK):
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
            if not environment.get(variable):
                environment[variable] = str(Path.cwd() / "howdah-home" / variable.split("_")[1].lower())


def for_spark(
    context: SparkContext, job: JobSpec, fed: Sequence[str], beside_driver: Sequence[str], socket: Path
) -> JobSpec:
    """Return the job as it runs in this application."""
    conf = context.getConf()
    properties = (f"{name}={conf.get(name)}" for name in _PASSED_ON if conf.get(name) is not None)
    options: dict[str, str | tuple[str, ...]] = {
        "driver_socket": str(socket),
        # With dynamic allocation Spark would take an executor away that has a program and no task; it brings more for
        # the tasks that feed.
        "feeding": () if conf.get(DYNAMIC) == "true" else tuple(fed),
        "beside_driver": tuple(beside_driver),
        "conf": (f"{DYNAMIC}=false", *properties),
    }
    roles = {
        name: replace(role, ports=(*role.ports, FEED_PORT)) if name in fed else role for name, role in job.roles.items()
    }
    links = {"Spark": context.uiWebUrl} if context.uiWebUrl else {}
    labels = {"spark.application": context.applicationId, **job.labels}
    return replace(
        job, roles=roles, links={**links, **job.links}, labels=labels, engines={**job.engines, "spark": options}
    )
