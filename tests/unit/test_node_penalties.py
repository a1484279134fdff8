"""Tests that failures of a node count against it, are shared between jobs, and that its penalty keeps tasks away."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from howdah.engines import node_penalties
from howdah.master.decisions.actions import (
    NoteNodeFailures,
    ReleaseContainer,
    RequestContainers,
)
from howdah.spec import Container, Exit, JobSpec, Role, Timeouts
from howdah.spec.events import Allocated, ContainerEnded, GangRestarted, Noted
from howdah.testing import Gang
from howdah.wire.messages import Phase


def gang_of(role: Role, **job: object) -> Gang:
    return Gang(JobSpec(roles={"worker": role}, retries=3, timeouts=Timeouts(hold_s=20), **job))  # type: ignore[arg-type]


def start(gang: Gang, count: int) -> None:
    for _ in range(count):
        gang.grant("worker")
    for index in range(count):
        gang.join(f"worker:{index}")
    for index in range(count):
        gang.run(f"worker:{index}")


def test_penalties_decay_with_time() -> None:
    held = node_penalties.penalties_by_node(
        [("a", 0.0), ("a", node_penalties.HALF_LIFE_S), ("b", 9e9)], node_penalties.HALF_LIFE_S
    )
    assert held == {"a": 1.5, "b": 1.0}


def test_jobs_tell_each_other_by_files(tmp_path: Path) -> None:
    home, now = tmp_path.as_uri(), time.time()
    for job in ("job-1", "job-2"):
        node_penalties.write_penalties(node_penalties.WritePenaltiesRequest(home, job, (("node7", now),)))
    (tmp_path / "strikes" / "broken.json").write_text("[[")
    old = tmp_path / "strikes" / "old.json"
    old.write_text(json.dumps([["node1", 0]]))
    os.utime(old, (0, 0))
    assert node_penalties.read_penalties(home, now) == {"node7": 2.0}
    assert not old.exists()
    assert node_penalties.read_penalties((tmp_path / "none").as_uri(), now) == {}


def test_a_gpu_that_failed_costs_no_retry_and_is_left() -> None:
    gang = gang_of(Role("w", replicas=2))
    gang.state.preflight.has_other_nodes = True
    start(gang, 2)
    exit = Exit("gpu", code=1, detail="GPU 3: XID 79, it has fallen off the bus; exit code 1")
    gang.end("worker:1", exit)
    assert gang.state.retries_used == 0
    assert "worker:1 on node2: GPU 3: XID 79" in gang.recorded(GangRestarted)[-1].reason
    assert "not counted as a retry: node" in gang.recorded(GangRestarted)[-1].reason
    assert gang.actions_of(NoteNodeFailures)[-1].failures == (("node2", gang.now),)
    assert [one.container_id for one in gang.actions_of(ReleaseContainer)] == ["c2"]
    assert (
        gang.actions_of(RequestContainers)[-1].count,
        gang.actions_of(RequestContainers)[-1].preferences.avoid,
    ) == (
        1,
        ("node2",),
    )
    assert "node2 has a GPU that failed" in gang.recorded(Noted)[-1].text


def test_a_gpu_that_failed_is_the_cause_of_what_its_peers_saw() -> None:
    gang = Gang(JobSpec(roles={"worker": Role("w", replicas=2)}))
    start(gang, 2)
    gang.end("worker:0", Exit("exit", code=1, lines=("connection reset",)))
    gang.end("worker:1", Exit("gpu", code=1, detail="GPU 3: XID 79"))
    assert gang.state.outcome is not None
    assert gang.state.outcome.diagnostics == "worker:1 on node2: GPU 3: XID 79"


def test_a_role_may_reclassify_a_gpu_failure() -> None:
    gang = gang_of(Role("w", replicas=2, causes={"XID 79": "user"}))
    start(gang, 2)
    gang.end("worker:1", Exit("gpu", code=1, detail="GPU 3: XID 79"))
    assert gang.state.outcome is not None
    assert not gang.actions_of(NoteNodeFailures)


def test_a_node_to_blame_gets_no_more_tasks_and_is_forgiven_when_there_is_no_other() -> None:
    gang = gang_of(Role("w", replicas=2))
    gang.state.node_penalties["node1"] = 1.0
    for number in range(2):
        gang.feed(Allocated(gang.now, Container(f"c{number}", f"node{number}", "worker")))
    gang.feed(ContainerEnded(gang.now, "c1", Exit("lost", detail="node lost")))
    assert gang.actions_of(NoteNodeFailures)[-1].failures == (("node1", gang.now),)
    assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ("node1",)
    assert "node1 caused too many failures" in gang.recorded(Noted)[-1].text
    gang.say("worker:0", Phase.JOINED, ports={"main": 1})
    for _ in range(3):
        gang.wait(8)
        gang.say("worker:0", Phase.JOINED, ports={"main": 1})
    assert "node1 may have tasks again" in gang.recorded(Noted)[-1].text
    assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ()
