"""Tests that a job's outcome is decided once and its outputs committed once, whatever messages arrive meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.master.decisions.actions import Commit, CommitDone, ReleaseContainer
from howdah.master.decisions.outputs import commit_request, part_directory
from howdah.master.state import Stage
from howdah.spec import Checkpoint, Exit, Output, Role, State, TaskId, Timeouts
from howdah.spec.events import CancelRequested, CheckpointFound, Committed, ContainerEnded, Noted
from howdah.testing import Gang, job
from howdah.wire.program_protocol import FUNCTION_RESULTS

ONE = {"worker": Role("train")}


def committing(**changes: Any) -> Gang:
    """A job whose only program has ended well, and whose outputs are being committed."""
    gang = Gang(job(**{"roles": ONE, "outputs": (Output("hdfs://n/out", optional=True),), **changes}))
    gang.form()
    gang.end("worker:0")
    assert gang.state.stage is Stage.COMMITTING
    return gang


def test_a_cancel_while_outputs_are_committed_changes_nothing() -> None:
    gang = committing()
    gang.feed(CancelRequested(gang.now, "alice"))
    assert gang.state.stage is Stage.COMMITTING
    gang.feed(CommitDone(gang.now, ("hdfs://n/out",)))
    assert gang.outcome is not None
    assert gang.outcome.state is State.SUCCEEDED
    assert [action.keep for action in gang.actions_of(Commit)] == [True]


def test_a_cancel_of_a_job_that_has_failed_changes_nothing() -> None:
    gang = Gang(job())
    gang.form()
    gang.end("worker:0", Exit("exit", 1))
    gang.feed(CancelRequested(gang.now, "alice"))
    for task in ("worker:1", "ps:0"):
        gang.end(task, Exit("stopped", signal=15))
    assert gang.outcome is not None
    assert (gang.outcome.state, gang.outcome.first) == (State.FAILED, TaskId("worker", 0))


def test_outputs_are_committed_once() -> None:
    gang = committing(timeouts=Timeouts(stop_s=1))
    gang.feed(ContainerEnded(gang.now, "c1", Exit("exit", 0)))
    for _ in range(10):
        gang.wait(60)
    assert len(gang.actions_of(Commit)) == 1


def test_a_master_that_takes_over_while_outputs_are_committed_does_it_once_more() -> None:
    gang = committing()
    gang.take_over()
    assert [action.keep for action in gang.actions_of(Commit)] == [
        True,
        True,
    ]  # the first may have died with its master
    gang.take_over()
    assert len(gang.actions_of(Commit)) == 3


def test_the_directory_of_checkpoints_is_given_back_though_there_are_no_outputs() -> None:
    gang = Gang(job(roles=ONE, checkpoint=Checkpoint("hdfs://n/ckpt")))
    gang.grant("worker")
    gang.join("worker:0")
    gang.feed(CheckpointFound(gang.now, (1,)))
    gang.run("worker:0")
    gang.end("worker:0")
    assert len(gang.actions_of(Commit)) == 1


def test_an_executor_that_has_not_spoken_is_not_waited_for() -> None:
    gang = Gang(job(roles=ONE))
    granted = gang.grant("worker")
    gang.feed(CancelRequested(gang.now, "alice"))
    assert gang.outcome is not None
    assert [action.container_id for action in gang.actions_of(ReleaseContainer)] == [granted.id]


@pytest.mark.parametrize("roles", [{"worker": Role("train", replicas=2, on_failure="ignore"), "other": Role("x")}])
def test_only_parts_of_tasks_that_ended_well_are_in_the_output(roles: dict[str, Role]) -> None:
    gang = Gang(job(roles=roles, outputs=(Output("hdfs://n/out"),)))
    gang.form()
    gang.end("worker:0", Exit("exit", 1))
    gang.end("worker:1")
    gang.end("other:0")
    (output,) = commit_request(gang.state).outputs
    assert [name for _, name in output.parts] == ["worker-1", "other-0"]


def test_two_attempts_never_write_one_place() -> None:
    gang = Gang(job(roles=ONE, retries=1))
    gang.form()
    places = {part_directory(gang.state.tasks[TaskId("worker", 0)])}
    gang.feed(ContainerEnded(gang.now, "c1", Exit("lost", detail="node lost")))
    gang.grant("worker")
    places.add(part_directory(gang.state.tasks[TaskId("worker", 0)]))
    assert len(places) == 2


def test_results_of_a_function_are_named_nowhere() -> None:
    """Their caller removes them."""
    results = Output("hdfs://n/r", source=FUNCTION_RESULTS, keep_failed=True, optional=True)
    gang = committing(outputs=(Output("hdfs://n/out", optional=True), results))
    gang.feed(CommitDone(gang.now, ("hdfs://n/out", "hdfs://n/r"), "", ("hdfs://n/r.failed", "hdfs://n/out.failed")))
    assert [event.uri for event in gang.recorded(Committed)] == ["hdfs://n/out"]
    assert [note.text for note in gang.recorded(Noted) if "kept" in note.text] == [
        "what the tasks made is kept in hdfs://n/out.failed"
    ]
