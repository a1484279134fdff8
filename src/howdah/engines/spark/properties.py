"""Says which properties the Spark application of a job has, and which resources its tasks take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from howdah.engines import MasterContext
from howdah.spec import JobSpec, Resources

MAX_FAILURES = 1000
"""Spark ends a stage, and with it healthy containers, when one of its tasks has failed so often: the master counts."""
HEAP_MIB = 512
"""The heap of an executor's JVM in MiB, which does nothing but wait."""
HEAP = f"{HEAP_MIB}m"
DYNAMIC = "spark.dynamicAllocation.enabled"


def application_properties(job: JobSpec, options: Mapping[str, Any], context: MasterContext) -> dict[str, str]:
    """Return the properties of spark-submit. Spark gives each container an executor of its own as long as it runs, and
    takes it back afterwards, unless the job's `conf` says otherwise."""
    given = dict(line.partition("=")[::2] for line in options["conf"])
    return {
        "spark.app.name": f"howdah {job.name}",
        "spark.driver.host": context.host,
        "spark.driver.memory": HEAP,
        "spark.executor.memory": HEAP,
        "spark.executor.cores": "1",
        DYNAMIC: "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.executorIdleTimeout": "5s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": "1s",
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.speculation": "false",
        "spark.task.maxFailures": str(MAX_FAILURES),
        "spark.howdah.job": context.job_id,
        **{name.strip(): value.strip() for name, value in given.items()},
    }


def resource_profile(resources: Resources, memory_mib: int, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return what a container takes, with dynamic allocation also what its executor has; nothing where it is what any
    task of the application takes. Programs are beside the JVM's heap, so their memory is the executor's overhead."""
    own = properties.get(DYNAMIC) == "true"
    cpus, gpus = (properties.get(f"spark.task.{name}") or "" for name in ("cpus", "resource.gpu.amount"))
    if not own and resources.vcores == int(cpus or 1) and resources.gpus == float(gpus or 0):
        return {}
    return {
        "vcores": resources.vcores,
        "gpus": resources.gpus,
        "memory_mib": memory_mib if own else 0,
        "heap": properties["spark.executor.memory"],
        "gpu_script": properties.get("spark.executor.resource.gpu.discoveryScript", ""),
        "gpu_vendor": properties.get("spark.executor.resource.gpu.vendor", "") or "nvidia.com",
    }
