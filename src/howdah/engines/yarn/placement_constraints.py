"""Placement constraints: which containers are requested with allocation tags, and the form that YARN requires.

A role without tags carries its name as its tag. YARN places nothing beside a tag that no container has yet, not even
the first container that carries the tag: if a role is to be near itself, its first container is requested without that
part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.errors import Mistake, SpecError
from howdah.hadoop.constraints import SELF, UNLIMITED, Composite, Constraint, Single, parse, singles
from howdah.spec import JobSpec

if TYPE_CHECKING:
    from howdah.spec.events import Noted

RACKS = "racks"
"""The setting that gives the allocator the racks of the hosts that tasks prefer, as JSON."""
HANDLER = "yarn.resourcemanager.placement-constraints.handler"
PARTITION = "yarn_node_partition/"
NODE = "node"
_ATTRIBUTE, _TAG = 1, 2
_AND, _OR = 1, 2
_NO_OPERATOR = 1

PATIENCE_S = 5.0
_REASONS = {1: "no node satisfies it", 2: "a node satisfies it, but could not take it"}
_NOT_SAID = "no node satisfies it, or none of those has room"

DISABLED = (
    "the cluster takes no placement constraints: a platform engineer has to set "
    f"{HANDLER}=scheduler in the ResourceManager's yarn-site.xml (it needs the Capacity Scheduler), "
    "or take placement.constraint and placement.tags out of the job"
)


def says_disabled(text: str) -> bool:
    """Return whether the ResourceManager's message says that placement constraints are disabled."""
    return "cannot handle placement constraints" in text


def constraint_of(job: JobSpec, role: str) -> Constraint | None:
    """Return the role's constraint.

    Raises:
        ValueError: its text is no constraint.
    """
    text = job.roles[role].placement.constraint
    return parse(text) if text else None


def tags_of(job: JobSpec, role: str) -> tuple[str, ...]:
    """Return the allocation tags of the role's containers; none if it has no constraint and no other constraint names
    it."""
    placement = job.roles[role].placement
    if placement.tags:
        return tuple(dict.fromkeys(placement.tags))
    return (role,) if placement.constraint or role in spoken_of(job) else ()


def check(job: JobSpec) -> None:
    """Raise SpecError with each text that is no constraint."""
    found = []
    for role in job.roles:
        try:
            constraint_of(job, role)
        except ValueError as error:
            found.append(Mistake(f"roles.{role}.placement.constraint", str(error)))
    if found:
        raise SpecError(found)


def spoken_of(job: JobSpec) -> set[str]:
    """Return the tags of this job's containers that its constraints name."""
    return {tag for role in job.roles for tag in names(constraint_of(job, role))}


def names(constraint: Constraint | None) -> list[str]:
    """Return the tags of this job's containers that the constraint names."""
    return [tag for part in singles(constraint) for tag in _names_own_role(part)] if constraint else []


def constraint_of_first(constraint: Constraint | None, tags: Collection[str]) -> Constraint | None:
    """Return what the first container of those that carry `tags` can satisfy: the constraint without the nearness to
    its own tags."""
    if constraint is None or isinstance(constraint, Single):
        near_itself = (
            constraint is not None and constraint.min_cardinality > 0 and set(_names_own_role(constraint)) & set(tags)
        )
        return None if near_itself else constraint
    parts = [constraint_of_first(part, tags) for part in constraint.parts]
    left = tuple(part for part in parts if part is not None)
    if not left or (constraint.kind == "or" and len(left) < len(parts)):
        return None
    return Composite(constraint.kind, left)


def is_placeable(constraint: Constraint | None, existing: Collection[str]) -> bool:
    """Return whether everything near which the constraint places containers exists, if the tags `existing` do."""
    if constraint is None:
        return True
    if isinstance(constraint, Single):
        return constraint.min_cardinality == 0 or set(_names_own_role(constraint)) <= set(existing)
    return (all if constraint.kind == "and" else any)(is_placeable(part, existing) for part in constraint.parts)


def _names_own_role(constraint: Single) -> Iterator[str]:
    return (tag for namespace, tag in constraint.tags if namespace == SELF)


def order(job: JobSpec) -> tuple[set[str], list[str]]:
    """Return two values: the roles whose first container comes before the containers that it should be near to; and the
    roles that can have no container, because the containers that they should be near to never exist, or wait for
    them."""
    waiting, existing = list(job.roles), set[str]()
    leaders = set[str]()
    while waiting:
        ready = [role for role in waiting if is_placeable(constraint_of(job, role), existing)]
        if not ready:
            ahead = ((role, constraint_of_first(constraint_of(job, role), tags_of(job, role))) for role in waiting)
            ready = [role for role, constraint in ahead if is_placeable(constraint, existing)][:1]
            leaders.update(ready)
        if not ready:
            break
        waiting = [role for role in waiting if role not in ready]
        existing.update(tag for role in ready for tag in tags_of(job, role))
    return leaders, waiting


def keeps_apart(constraint: Constraint | None, tags: Collection[str]) -> bool:
    """Return whether no two containers that carry `tags` may be on one node."""
    if isinstance(constraint, Composite):
        return constraint.kind == "and" and any(keeps_apart(part, tags) for part in constraint.parts)
    return constraint is not None and constraint.max_cardinality == 0 and set(_names_own_role(constraint)) <= set(tags)


# To YARN


def satisfied_anywhere(tags: Collection[str]) -> Constraint:
    """Return a constraint that every node satisfies. A ResourceManager fails on a change of a request without any
    constraint."""
    return Single(NODE, tuple((SELF, tag) for tag in tags), 0, UNLIMITED)


def message(constraint: Constraint, label: str) -> pb.PlacementConstraint:
    """Return the constraint in YARN's form. `label` is that of the nodes; a SchedulingRequest can give it only in its
    constraint, and only if that is a Single."""
    if isinstance(constraint, Composite):
        parts = [message(part, "") for part in constraint.parts]
        kind = _AND if constraint.kind == "and" else _OR
        return pb.PlacementConstraint(composite=pb.CompositeConstraint(type=kind, parts=parts))
    targets = [pb.ConstraintTarget(type=_TAG, key=namespace, values=[tag]) for namespace, tag in constraint.tags]
    if label:
        targets.append(pb.ConstraintTarget(type=_ATTRIBUTE, key=PARTITION, values=[label]))
    limits = {"least": constraint.min_cardinality, "most": constraint.max_cardinality}
    simple = pb.SimpleConstraint(scope=constraint.scope, targets=targets, operator=_NO_OPERATOR, **limits)
    return pb.PlacementConstraint(simple=simple)


class UnsatisfiedConstraints:
    """Notes containers that wait for a node that satisfies their constraint, once for each wait. The Capacity Scheduler
    keeps such requests without a message; the placement processor rejects them, and they are requested again."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._waits: dict[str, tuple[int, float]] = {}
        self._noted: set[str] = set()

    def new_notes(self, waiting: Mapping[str, int], rejected: Mapping[str, int], now: float) -> Iterator[Noted]:
        """Yield new notes. `waiting` counts the missing containers by role, `rejected` has YARN's reason for some
        roles."""
        from howdah.spec.events import Noted  # a client, which checks constraints only, need not wait for it

        for role, text in ((name, spec.placement.constraint) for name, spec in self._job.roles.items()):
            count = waiting.get(role, 0)
            before, since = self._waits.get(role, (0, now))
            if not text or count != before:
                self._waits[role] = (count, now)
                self._noted.discard(role)
            elif count and role not in self._noted and (role in rejected or now - since > PATIENCE_S):
                self._noted.add(role)
                reason = _REASONS.get(rejected.get(role, 0), _NOT_SAID)
                yield Noted(now, f"{role} waits for {count} more, placed as {text!r} (placement.constraint): {reason}")
