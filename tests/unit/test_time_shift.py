"""Tests that time in which the master did not run counts for no deadline."""

from __future__ import annotations

from howdah.master.decisions.time_shift import shift_deadlines
from howdah.master.preflight.state import PairTest
from howdah.master.snapshots.state import SnapshotRequest, SnapshotRun
from howdah.master.state import RestartCause
from howdah.spec import TaskId
from howdah.testing import Gang, job


def test_all_moments_move() -> None:
    gang = Gang(job())
    gang.form()
    state, task = gang.state, TaskId("worker", 0)
    run = SnapshotRun(1, output=0, name="n", uri="u", temporary="t", started_at=5.0, parts={}, reported_at=6.0)
    state.snapshots.running[0] = run
    state.snapshots.requested[0] = SnapshotRequest(2, "alice", 7.0)
    state.snapshots.due[0] = 8.0
    state.preflight.pair_tests[1] = PairTest({}, set(), began=9.0)
    state.last_restart_cause = RestartCause(task, 1, 1, 10.0)
    heard_at = state.tasks[task].heard_at
    shift_deadlines(state, 100.0)
    assert (run.started_at, run.reported_at, state.snapshots.requested[0].not_before) == (105.0, 106.0, 107.0)
    assert (state.snapshots.due[0], state.preflight.pair_tests[1].began) == (108.0, 109.0)
    assert state.last_restart_cause.seen_at == 110.0
    assert state.tasks[task].heard_at == heard_at + 100.0
