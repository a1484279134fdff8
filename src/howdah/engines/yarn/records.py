"""Converts YARN's records: ids to and from text, resources to and from amounts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec import Resources

GPU = "yarn.io/gpu"
MEMORY, VCORES = "memory-mb", "vcores"
EPOCH_SHIFT = 40
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

APPLICATION_STATES = ("", "NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED")
NODE_STATES = (
    "", "new", "running", "unhealthy", "decommissioned", "lost", "rebooted", "decommissioning", "shut down",
)  # fmt: skip
NODE_RUNNING = 2
COMPLETE = 3


def name(names: tuple[str, ...], number: int) -> str:
    """Return the name of an enumeration's value; for a value of a later Hadoop its number."""
    return names[number] if 0 <= number < len(names) else str(number)


def application_id(proto: pb.ApplicationId) -> str:
    """Return an application's id as text, `application_1700000000000_0001`."""
    return f"application_{proto.cluster_timestamp}_{proto.id:04d}"


def parse_application_id(text: str) -> pb.ApplicationId:
    """Read an application's id.

    Raises:
        ValueError: `text` is no such id.
    """
    match = re.fullmatch(r"application_(\d+)_(\d+)", text)
    if not match:
        raise ValueError(f"{text!r} is not an application id (application_<timestamp>_<number>)")
    return pb.ApplicationId(cluster_timestamp=int(match[1]), id=int(match[2]))


def attempt_of(container: str) -> int:
    """Return the application attempt to which a container belongs, by the container's id; 1 for any other text."""
    parts = container.split("_")
    return int(parts[-2]) if len(parts) >= 5 and parts[-2].isdigit() else 1


def container_id(proto: pb.ContainerId) -> str:
    """Return a container's id as text, `container_e02_1700000000000_0001_01_000003`; the epoch `e02` is there only
    after the ResourceManager was restarted."""
    epoch, number = divmod(proto.id, 1 << EPOCH_SHIFT)
    prefix = f"e{epoch:02d}_" if epoch else ""
    application = application_id(proto.attempt_id.application_id).removeprefix("application_")
    return f"container_{prefix}{application}_{proto.attempt_id.attempt:02d}_{number:06d}"


def amounts(resources: Resources) -> dict[str, int]:
    """Return amounts by YARN's resource name, memory in MiB; GPUs only if there are any."""
    gpus = {GPU: resources.gpus} if resources.gpus else {}
    return {MEMORY: resources.memory_mib, VCORES: resources.vcores, **gpus, **resources.named}


def to_resource(wanted: Mapping[str, int]) -> pb.Resource:
    """Return resources in YARN's form. Hadoop 3 drops memory and cores that are only in the two fields if there is a
    map, too: both are filled."""
    resource = pb.Resource(memory=wanted[MEMORY], vcores=wanted[VCORES])
    for key, value in wanted.items():
        resource.values.add(key=key, value=value, units="Mi" if key == MEMORY else "", type=0)
    return resource


def from_resource(resource: pb.Resource) -> dict[str, int]:
    """Return amounts in base units (memory in MiB): the inverse of `to_resource`."""
    others = {
        value.key: value.value * _UNITS.get(value.units, 1)
        for value in resource.values
        if value.key not in (MEMORY, VCORES)
    }
    return {MEMORY: resource.memory, VCORES: resource.vcores, **others}


def to_resources(resource: pb.Resource) -> Resources:
    """Return the resources of a granted container."""
    found = from_resource(resource)
    memory, vcores, gpus = found.pop(MEMORY), found.pop(VCORES), found.pop(GPU, 0)
    return Resources(memory, vcores, gpus, {key: value for key, value in found.items() if value})
