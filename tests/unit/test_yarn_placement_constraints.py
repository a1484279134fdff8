"""Tests placement constraints: their syntax, impossible ones, and the message that YARN gets."""

from __future__ import annotations

import contextlib
import re

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from howdah.engines.yarn import admission_checks, placement_constraints
from howdah.engines.yarn.placement_constraints import PATIENCE_S, UnsatisfiedConstraints
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_master_protocol import ContainerRequest
from howdah.errors import SpecError
from howdah.hadoop.constraints import parse
from howdah.spec import JobSpec, Placement, Role

UNLIMITED = 2147483647
NODES = [pb.NodeReport(node=pb.NodeId(host=host, port=1)) for host in "abc"]


def told(text: str, label: str = "") -> str:
    return text_format.MessageToString(placement_constraints.message(parse(text), label), as_one_line=True)


def simple(tags: str, minimum: int, maximum: int, scope: str = "node") -> str:
    targets = "".join(f'targets {{ type: 2 key: "self" values: "{tag}" }} ' for tag in tags)
    return f'simple {{ scope: "{scope}" {targets}least: {minimum} most: {maximum} operator: 1 }}'


# What Hadoop 3.5.0's own parser and converter make of the same texts.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("notin,node,w", simple("w", 0, 0)),
        ("IN, NODE, a, b", simple("ab", 1, UNLIMITED)),
        ("in,node,a,", simple("a", 1, UNLIMITED)),
        ("cardinality,node,a,0,1", simple("a", 0, 1)),
        ("cardinality,rack,a,b,1,2", simple("ab", 1, 2, "rack")),
        ("and(in,node,a)", f"composite {{ type: 1 parts {{ {simple('a', 1, UNLIMITED)} }} }}"),
        (
            "AND(notin,node,a:or(in,node,b:in,rack,c))",
            f"composite {{ type: 1 parts {{ {simple('a', 0, 0)} }} parts {{ composite {{ type: 2 "
            f"parts {{ {simple('b', 1, UNLIMITED)} }} parts {{ {simple('c', 1, UNLIMITED, 'rack')} }} }} }} }}",
        ),
        ("in,node,all/x", simple("x", 1, UNLIMITED).replace("self", "all")),
        ("notin,node,not-self/x", simple("x", 0, 0).replace("self", "not-self")),
    ],
)
def test_what_is_written_and_what_yarn_is_told(text: str, message: str) -> None:
    assert told(text) == message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is none of in, notin, cardinality, and, or (at character 1)"),
        ("notinn,node,a", "'notinn' is none of in, notin, cardinality, and, or (did you mean 'notin'?) (at charact"),
        ("in", "in is followed by node or rack, not by 'nothing' (at character 1)"),
        ("and(in,node,a:in,host,b)", "in is followed by node or rack, not by 'host' (at character 15)"),
        ("in,node", "'in,node' names no allocation tag, as in in,node,worker (at character 1)"),
        ("cardinality,node,a,1", "cardinality ends with the least and the most containers, as in"),
        ("cardinality,node,a,-1,1", "cardinality ends with the least and the most containers, as in"),
        ("cardinality,node,a,3,1", "at least 3 and at most 1 containers cannot be (at character 1)"),
        ("in,node,foo/x", "'foo/x': before a tag may stand self/, not-self/, all/ alone (at character 1)"),
        ("worker=3,in,node,a", "'worker=3': counts and node attributes (name=value) are not supported"),
        ("and(in,node,a:in,node,b", "and(…) is not closed: its parts stand between : and end with ) (at character 24)"),
        ("and()", "'' is none of in, notin, cardinality, and, or (at character 5)"),
        ("in,node,a:in,node,b", "':in,node,b' comes after the end; several constraints are and(…:…)"),
        ("and(" * 1000, "more than 20 brackets within each other (at character 81)"),
    ],
)
def test_what_is_no_constraint(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as raised:
        parse(text)
    assert "\n" not in str(raised.value)


@given(st.text(alphabet="andor(): ,/=1inotde\n", max_size=40))
def test_any_text_is_a_constraint_or_none(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert placement_constraints.message(parse(text), "")


def job(**constraints: str) -> JobSpec:
    """A role of four tasks for each."""
    return JobSpec({name: Role("x", 4, placement=Placement(constraint=text)) for name, text in constraints.items()})


def test_all_mistakes_are_told_at_their_places() -> None:
    with pytest.raises(SpecError) as raised:
        placement_constraints.check(job(a="in,node", b="in,node,a", c="x"))
    assert [mistake.place for mistake in raised.value.mistakes] == [
        "roles.a.placement.constraint",
        "roles.c.placement.constraint",
    ]


def test_a_role_that_is_spoken_of_carries_its_name() -> None:
    spec = job(worker="in,node,ps", ps="", other="")
    assert [placement_constraints.tags_of(spec, role) for role in spec.roles] == [("worker",), ("ps",), ()]
    tagged = JobSpec({"ps": Role("x", placement=Placement(tags=("a", "b", "a")))})
    assert placement_constraints.tags_of(tagged, "ps") == ("a", "b")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("in,node,w", None),
        ("cardinality,node,w,1,3", None),
        ("notin,node,w", "notin,node,w"),
        ("in,node,all/w", "in,node,all/w"),
        ("and(in,node,w:notin,node,ps)", "and(notin,node,ps)"),
        ("and(in,node,w:in,rack,w)", None),
        ("or(in,node,w:in,node,ps)", None),
        ("or(in,node,a:in,node,ps)", "or(in,node,a:in,node,ps)"),
    ],
)
def test_the_first_container_is_near_nothing_of_its_own(text: str, first: str | None) -> None:
    assert placement_constraints.constraint_of_first(parse(text), ("w",)) == (parse(first) if first else None)


def test_who_leads_and_who_can_never_be_placed() -> None:
    assert placement_constraints.order(job(a="in,node,a", b="in,node,a", c="")) == ({"a"}, [])
    assert placement_constraints.order(job(a="in,node,b", b="in,node,a")) == (set(), ["a", "b"])
    assert placement_constraints.order(job(a="and(in,node,b:in,node,a)", b="")) == ({"a"}, [])
    assert placement_constraints.order(job(a="or(in,node,x:notin,node,a)")) == (set(), [])


def test_what_can_never_be_satisfied_is_refused() -> None:
    assert list(admission_checks.find_impossible_constraints(job(worker="notin,node,worker"), NODES)) == [
        "role 'worker': 'notin,node,worker' keeps 4 tasks on 4 nodes, the cluster has 3"
    ]
    assert list(admission_checks.find_impossible_constraints(job(a="in,node,b", b="in,node,a"), NODES)) == [
        "role 'a': 'in,node,b' can never be satisfied: what it is to be near to waits for this role itself",
        "role 'b': 'in,node,a' can never be satisfied: what it is to be near to waits for this role itself",
    ]
    assert list(admission_checks.find_impossible_constraints(job(worker="notin,node,wroker", ps=""), NODES)) == [
        "role 'worker': 'notin,node,wroker' names the tag 'wroker', which no role has "
        "(their tags: worker; did you mean 'worker'?)"
    ]
    assert list(admission_checks.find_impossible_constraints(job(worker="in,node,worker", ps=""), NODES)) == []


def test_a_label_goes_with_one_part_only() -> None:
    assert 'targets { type: 1 key: "yarn_node_partition/" values: "gpu" }' in told("notin,node,w", "gpu")
    role = Role("x", 1, node_label="gpu", placement=Placement(constraint="and(in,rack,w:notin,node,w)"))
    (refused,) = admission_checks.find_impossible_constraints(JobSpec({"w": role}), NODES)
    assert refused.endswith("and a node label: YARN takes a label with a constraint of one part only, not with and, or")


def test_tags_alone_come_with_a_constraint_that_every_node_satisfies() -> None:
    ask = ContainerRequest(2, 2, 3, {"memory-mb": 64, "vcores": 1}, "gpu", tags=("a",))
    request = ask.scheduling_request()
    assert (request.allocation_request_id, list(request.tags), request.sizing.containers) == (2, ["a"], 3)
    one = request.constraint.simple
    assert (one.least, one.most) == (0, UNLIMITED)
    assert [list(target.values) for target in one.targets] == [["a"], ["gpu"]]


def test_a_cluster_that_takes_none_is_named() -> None:
    said = "Found non empty SchedulingRequest, but the configured yarn.x cannot handle placement constraints."
    assert placement_constraints.says_disabled(said)
    assert not placement_constraints.says_disabled("Invalid resource request")


def test_waiting_is_told_once_and_again_after_a_change() -> None:
    unplaced = UnsatisfiedConstraints(job(worker="in,node,all/x", ps=""))
    assert not list(unplaced.new_notes({"worker": 2, "ps": 1}, {}, 0.0))
    assert not list(unplaced.new_notes({"worker": 2}, {}, PATIENCE_S))
    (note,) = unplaced.new_notes({"worker": 2}, {}, PATIENCE_S + 1)
    assert note.text == (
        "worker waits for 2 more, placed as 'in,node,all/x' (placement.constraint): "
        "no node satisfies it, or none of those has room"
    )
    assert not list(unplaced.new_notes({"worker": 2}, {}, 60))
    assert not list(unplaced.new_notes({"worker": 1}, {}, 61))
    (note,) = unplaced.new_notes({"worker": 1}, {"worker": 1}, 62)
    assert note.text.endswith("no node satisfies it")
