"""The container image and mounts that a role asks for, in the variables that YARN's NodeManagers read.

A job asks by `environment.image`, `roles.NAME.image` and `mounts`, or by these variables themselves under `env`, as
every other program on YARN does (DockerLinuxContainerRuntime and RuncContainerRuntime of Hadoop 3).
"""

from __future__ import annotations

from typing import Dict, Iterator, Mapping, Tuple

from howdah.errors import Mistake
from howdah.spec.job import JobSpec

PREFIX = "YARN_CONTAINER_RUNTIME_"
TYPE = f"{PREFIX}TYPE"
RUNTIMES = ("docker", "runc")
"""Values of TYPE that ask for an image."""
DEFAULT_IMAGE = "the cluster's default image"


def runtime_variables(job: JobSpec, role: str) -> Dict[str, str]:
    """Return the variables that tell a NodeManager how to run the containers of `role`; none for a plain process."""
    spec = job.roles[role]
    found = {name: value for name, value in {**job.env, **spec.env}.items() if name.startswith(PREFIX)}
    image = spec.image or job.environment.image
    if image or f"{PREFIX}DOCKER_IMAGE" in found:
        found.setdefault(TYPE, RUNTIMES[0])
    if found.get(TYPE) not in RUNTIMES:
        return found
    prefix = f"{PREFIX}{found[TYPE].upper()}_"
    if image:
        found[f"{prefix}IMAGE"] = image
    mounts = [found.get(f"{prefix}MOUNTS", ""), *job.environment.mounts, *spec.mounts]
    if any(mounts):
        found[f"{prefix}MOUNTS"] = ",".join(filter(None, mounts))
    return found


def requested_image(variables: Mapping[str, str]) -> str:
    """Return the image that these variables ask for; "" when they ask for none."""
    kind = variables.get(TYPE, "")
    return variables.get(f"{PREFIX}{kind.upper()}_IMAGE", DEFAULT_IMAGE) if kind in RUNTIMES else ""


def requested_mounts(variables: Mapping[str, str]) -> Tuple[str, ...]:
    """Return the mounts that these variables ask for."""
    mounts = variables.get(f"{PREFIX}{variables.get(TYPE, '').upper()}_MOUNTS", "")
    return tuple(filter(None, mounts.split(",")))


def has_images(job: JobSpec) -> bool:
    """Return whether a role of the job asks for an image."""
    return any(requested_image(runtime_variables(job, name)) for name in job.roles)


def mistakes(job: JobSpec) -> Iterator[Mistake]:
    """Find images that contradict each other, and mounts without an image."""
    images = {name: requested_image(runtime_variables(job, name)) for name in job.roles}
    if job.environment.mounts and not any(images.values()):
        yield Mistake("environment.mounts", "has no effect without an image (environment.image or roles.NAME.image)")
    for name, role in job.roles.items():
        if role.mounts and not images[name]:
            yield Mistake(f"roles.{name}.mounts", f"has no effect without an image (roles.{name}.image)")
        yield from _check_contradictions(f"roles.{name}.env", role.env, f"roles.{name}.image", role.image)
        if not role.image:
            yield from _check_contradictions(f"roles.{name}.env", role.env, "environment.image", job.environment.image)
    yield from _check_contradictions("env", job.env, "environment.image", job.environment.image)


def _check_contradictions(owner: str, env: Mapping[str, str], place: str, image: str) -> Iterator[Mistake]:
    kind = env.get(TYPE, RUNTIMES[0])
    variable = f"{PREFIX}{kind.upper()}_IMAGE"
    if image and kind not in RUNTIMES:
        yield Mistake(f"{owner}.{TYPE}", f"is {kind!r}, but {place} asks for an image: remove one of them")
    elif image and env.get(variable, image) != image:
        problem = f"is {env[variable]!r}, but {place} is {image!r}: remove one of them"
        yield Mistake(f"{owner}.{variable}", problem)
