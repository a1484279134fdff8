"""Which containers are asked for with allocation tags and a placement constraint, and how YARN is told.

A role without tags carries its name as its tag. YARN places nothing beside a tag that is nowhere yet, not even the
first container that carries it: where a role is to be near itself, its first container is asked for without that part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.errors import Mistake, SpecError
from howdah.hadoop.constraints import SELF, UNLIMITED, Composite, Constraint, Single, parse, singles
from howdah.spec import JobSpec

HANDLER = "yarn.resourcemanager.placement-constraints.handler"
PARTITION = "yarn_node_partition/"
NODE = "node"
_ATTRIBUTE, _TAG = 1, 2
_AND, _OR = 1, 2
_NO_OPERATOR = 1


DISABLED = (
    "the cluster takes no placement constraints: a platform engineer has to set "
    f"{HANDLER}=scheduler in the ResourceManager's yarn-site.xml (it needs the Capacity Scheduler), "
    "or take placement.constraint and placement.tags out of the job"
)


def disabled(said: str) -> bool:
    """Whether `said`, by a ResourceManager, means that."""
    return "cannot handle placement constraints" in said


def constraint_of(job: JobSpec, role: str) -> Constraint | None:
    """Raises ValueError when what is written is none."""
    text = job.roles[role].placement.constraint
    return parse(text) if text else None


def tags_of(job: JobSpec, role: str) -> tuple[str, ...]:
    """Allocation tags of the role's containers; none when it has no constraint and nobody speaks of it."""
    placement = job.roles[role].placement
    if placement.tags:
        return tuple(dict.fromkeys(placement.tags))
    return (role,) if placement.constraint or role in spoken_of(job) else ()


def check(job: JobSpec) -> None:
    """Raises SpecError with each constraint that is none."""
    found = []
    for role in job.roles:
        try:
            constraint_of(job, role)
        except ValueError as error:
            found.append(Mistake(f"roles.{role}.placement.constraint", str(error)))
    if found:
        raise SpecError(found)


def spoken_of(job: JobSpec) -> set[str]:
    """Tags of this job's containers that its constraints name."""
    return {tag for role in job.roles for tag in names(constraint_of(job, role))}


def names(constraint: Constraint | None) -> list[str]:
    """Tags of this job's containers that it names."""
    return [tag for one in singles(constraint) for tag in _own(one)] if constraint else []


def first(constraint: Constraint | None, tags: Collection[str]) -> Constraint | None:
    """What the first container of those that carry `tags` can satisfy: the same, less the nearness to its own."""
    if constraint is None or isinstance(constraint, Single):
        near_itself = constraint is not None and constraint.least > 0 and set(_own(constraint)) & set(tags)
        return None if near_itself else constraint
    parts = [first(part, tags) for part in constraint.parts]
    left = tuple(part for part in parts if part is not None)
    if not left or (constraint.kind == "or" and len(left) < len(parts)):
        return None
    return Composite(constraint.kind, left)


def placeable(constraint: Constraint | None, there: Collection[str]) -> bool:
    """Whether nothing is lacking that it wants to be near to, where containers with the tags `there` can be."""
    if constraint is None:
        return True
    if isinstance(constraint, Single):
        return constraint.least == 0 or set(_own(constraint)) <= set(there)
    return (all if constraint.kind == "and" else any)(placeable(part, there) for part in constraint.parts)


def _own(constraint: Single) -> Iterator[str]:
    return (tag for namespace, tag in constraint.tags if namespace == SELF)


def order(job: JobSpec) -> tuple[set[str], list[str]]:
    """Roles whose first container comes before what it wants to be near to, and roles that can have no container:
    what they want to be near to is never there, or waits for them."""
    waiting, there = list(job.roles), set[str]()
    leaders = set[str]()
    while waiting:
        ready = [role for role in waiting if placeable(constraint_of(job, role), there)]
        if not ready:
            ready = [role for role in waiting if _can_lead(job, role, there)][:1]
            leaders.update(ready)
        if not ready:
            break
        waiting = [role for role in waiting if role not in ready]
        there.update(tag for role in ready for tag in tags_of(job, role))
    return leaders, waiting


def _can_lead(job: JobSpec, role: str, there: Collection[str]) -> bool:
    constraint, tags = constraint_of(job, role), tags_of(job, role)
    return placeable(first(constraint, tags), there)


def apart(constraint: Constraint | None, tags: Collection[str]) -> bool:
    """Whether no two containers that carry `tags` may be on a node."""
    if isinstance(constraint, Composite):
        return constraint.kind == "and" and any(apart(part, tags) for part in constraint.parts)
    return constraint is not None and constraint.most == 0 and set(_own(constraint)) <= set(tags)


# To YARN


def anywhere(tags: Collection[str]) -> Constraint:
    """What every node satisfies. A ResourceManager fails on a change of a request that has no constraint at all."""
    return Single(NODE, tuple((SELF, tag) for tag in tags), 0, UNLIMITED)


def message(constraint: Constraint, label: str) -> pb.PlacementConstraint:
    """`label` is that of the nodes, which a SchedulingRequest can say in its constraint alone, if that is a Single."""
    if isinstance(constraint, Single):
        return _simple(constraint, label)
    parts = [message(part, "") for part in constraint.parts]
    kind = _AND if constraint.kind == "and" else _OR
    return pb.PlacementConstraint(composite=pb.CompositeConstraint(type=kind, parts=parts))


def _simple(one: Single, label: str) -> pb.PlacementConstraint:
    targets = [pb.ConstraintTarget(type=_TAG, key=namespace, values=[tag]) for namespace, tag in one.tags]
    if label:
        targets.append(pb.ConstraintTarget(type=_ATTRIBUTE, key=PARTITION, values=[label]))
    simple = pb.SimpleConstraint(
        scope=one.scope, targets=targets, least=one.least, most=one.most, operator=_NO_OPERATOR
    )
    return pb.PlacementConstraint(simple=simple)
