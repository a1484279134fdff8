"""The places of a job on a batch system: room for one container each, in the job's own allocation or in an extra job;
and the containers that hold them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from howdah.engines import ContainerPreferences
from howdah.spec import Container, JobSpec

if TYPE_CHECKING:  # a submission, which counts places, does not need asyncio
    from howdah.engines.kept_process import KeptProcess

Shape = TypeVar("Shape")
"""The properties that distinguish kinds of room."""
_RECORD = "step.json"


@dataclasses.dataclass(eq=False)
class Place(Generic[Shape]):
    """Room for one container in a job of the batch system."""

    number: str
    """The number of the job that has the room."""
    node: str
    """The node, by its name in the batch system."""
    shape: Shape
    """The shape of the container that fits."""
    group: str = ""
    """The component of a heterogeneous job."""
    extra_id: str = ""
    """The id by which the extra job is cancelled."""
    role: str = ""
    """The role for which an extra job was submitted; "" in the job's own allocation."""
    container: str = ""
    """The id of the container that occupies the place."""
    is_suspect: bool = False
    """Whether the batch system may have lost the node."""


@dataclasses.dataclass(eq=False)
class HeldContainer(Generic[Shape]):
    """A granted container, and its step."""

    container: Container
    """The container that the allocator has granted to the master."""
    place: Place[Shape]
    """The place that the container takes up."""
    step: KeptProcess | None = None
    """The process that waits for the end of its step; None before the launch."""
    directory: Path = Path()
    """The directory of its logs and exit status."""
    released: bool = False
    """Whether the master has released it."""


def places_at_once(job: JobSpec, shape_of: Callable[[JobSpec, str], Shape]) -> dict[Shape, int]:
    """Return the number of places of each shape for all tasks that run at the same time, and for their roles' spares.
    `shape_of` gives the shape of a role's containers. Later waves use the places of earlier ones."""
    maximum = Counter[Shape]()
    for wave in job.waves:
        at_once = Counter[Shape]()
        for name in wave:
            at_once[shape_of(job, name)] += job.roles[name].replicas + job.roles[name].spares
        maximum |= at_once
    return maximum


def free_places(
    places: Iterable[Place[Shape]], role: str, shape: Shape, preferences: ContainerPreferences
) -> list[Place[Shape]]:
    """Return the free places that suit a role, preferred nodes first."""

    def fits(place: Place[Shape]) -> bool:
        is_free = not (place.container or place.is_suspect) and place.role in ("", role)
        return is_free and place.shape == shape and place.node not in preferences.avoid

    return sorted(filter(fits, places), key=lambda place: -preferences.prefer.get(place.node, 0))


def write_record(directory: Path, held: HeldContainer[Any], run: str) -> None:
    """Record the facts about a step that a later master needs, in the container's directory."""
    assert held.step is not None
    place = {name: getattr(held.place, name) for name in ("number", "node", "role", "extra_id")}
    record = {**place, "process": held.step.to_json(), "directory": str(held.directory), "run": run}
    fresh = directory / f"{_RECORD}.new"
    fresh.write_text(json.dumps(record))
    fresh.replace(directory / _RECORD)


def read_records(containers: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ids of all containers that an earlier master has started and kept, each with its record."""
    for path in containers.glob(f"*/{_RECORD}"):
        with contextlib.suppress(FileNotFoundError):  # it ends just now
            yield path.parent.name, json.loads(path.read_text())
