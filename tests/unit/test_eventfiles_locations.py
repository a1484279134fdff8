"""Tests finding the locations of a job's event files from its events alone."""

from __future__ import annotations

from howdah.api.handlers.curves import checkpoints
from howdah.eventfiles.locations import event_file_locations
from howdah.spec import Board, Checkpoint, Exit, JobSpec, Outcome, Output, Role, State, TaskId
from howdah.spec.events import Committed, Ended, Event, JobFinished, JobStarted, SaveDone, SaveStarted
from howdah.spec.fold import fold
from howdah.spec.validation import find_mistakes

ROLES = {"worker": Role("t", replicas=2)}
MODEL = Output("hdfs://n/models/a", "model")


def started(job: JobSpec) -> Event:
    return JobStarted(1.0, "job-1", "yarn", "me", job)


def test_what_board_names_is_believed() -> None:
    job = JobSpec(ROLES, board=Board("hdfs://n/runs"), checkpoint=Checkpoint("hdfs://n/c"), outputs=(MODEL,))
    assert event_file_locations(fold([started(job)])) == [("", "hdfs://n/runs")]
    assert event_file_locations(fold([])) == []


def test_checkpoints_are_looked_for_beside_the_board_too() -> None:
    job = JobSpec(ROLES, board=Board("hdfs://n/runs"), checkpoint=Checkpoint("hdfs://n/c"), outputs=(MODEL,))
    done = [started(job), Committed(5.0, MODEL.path)]
    assert checkpoints(fold(done)) == ["hdfs://n/c", MODEL.path, "hdfs://n/runs"]
    assert checkpoints(fold([])) == []


def test_outputs_as_far_as_they_are_there() -> None:
    events = [started(JobSpec(ROLES, checkpoint=Checkpoint("hdfs://n/c"), outputs=(MODEL, Output("hdfs://n/b/a"))))]
    checkpoints = [("checkpoint", "hdfs://n/c")]
    assert event_file_locations(fold(events)) == checkpoints
    events.append(Ended(2.0, TaskId("worker", 1), 1, 1, Exit("exit", 0), True))
    parts = [(f"{name}/worker-1", f"hdfs://n/{place}/worker-1.0") for name, place in _PLACES]
    assert event_file_locations(fold(events)) == checkpoints + parts
    events += [SaveStarted(3.0, 1, 0, "hdfs://n/models/a.saved/1", 2), SaveDone(4.0, 1, 5, 9, 5)]
    assert event_file_locations(fold(events))[1] == ("a", "hdfs://n/models/a.saved/1")
    events += [Committed(5.0, MODEL.path), JobFinished(6.0, Outcome(State.SUCCEEDED))]
    assert event_file_locations(fold(events)) == [*checkpoints, ("a", MODEL.path)]


_PLACES = (("a", "models/.howdah-job-1-0"), ("a-2", "b/.howdah-job-1-1"))


def test_a_failed_job_keeps_what_it_was_asked_to() -> None:
    job = JobSpec(ROLES, outputs=(Output("hdfs://n/a", keep_failed=True), Output("hdfs://n/b")))
    assert event_file_locations(fold([started(job), JobFinished(2.0, Outcome(State.FAILED))])) == [
        ("a", "hdfs://n/a.failed")
    ]


def test_what_is_wrong_with_it_is_told() -> None:
    def told(board: Board) -> list[str]:
        return [str(mistake) for mistake in find_mistakes(JobSpec(ROLES, board=board))]

    assert told(Board("hdfs://n/runs")) == told(Board(local="logs", tasks="worker:1")) == told(Board()) == []
    assert "inside the working directory" in told(Board(local="../logs"))[0]
    assert "must be chief, a role, or a task" in told(Board(local="logs", tasks="boss"))[0]
    assert "no `local` directory" in told(Board("hdfs://n/runs", tasks="worker"))[0]
    assert "at least 1 s" in told(Board(every_s=0.1))[0]
