"""Tests that a task's row says whether the task is a straggler, and whether its container will be taken away; and where
runs of experiment trackers are."""

from __future__ import annotations

from howdah.api import serializers
from howdah.api.cli_status import describe
from howdah.api.serializers import tasks
from howdah.cli.terminal import tracker_lines
from howdah.spec import Container, Exit, JobSpec, Outcome, Role, State, TaskId
from howdah.spec.events import JobFinished, JobStarted, Launched, LossAnnounced, Straggling, TrackerRunsFound
from howdah.spec.fold import fold

W1 = TaskId("worker", 1)


def test_what_people_should_see_of_a_task() -> None:
    began = [
        JobStarted(1.0, "job-1", "yarn", "alice", JobSpec(roles={"worker": Role("w", replicas=2)})),
        Launched(1.5, W1, 1, Container("c1", "node7", "worker")),
        Straggling(2.0, W1, "step time", 3.1, 1.0),
        LossAnnounced(3.0, "c1", "preemption", 15.0, "will be preempted", W1),
    ]
    rows = {row["task"]: row for row in tasks(fold(began))}
    assert rows["worker:0"]["straggler"] == rows["worker:0"]["notice"] == ""
    assert "3.1" in rows["worker:1"]["straggler"]
    assert rows["worker:1"]["notice"] == "will be preempted"
    assert tasks(fold([*began, Straggling(4.0, W1)]))[1]["straggler"] == ""


def test_where_runs_of_trackers_are() -> None:
    url = "https://wandb.ai/vision/digits/runs/x7k2"
    env = {"WANDB_ENTITY": "vision", "WANDB_PROJECT": "digits"}
    job = JobSpec(roles={"worker": Role("w", replicas=2, env=env)}, env={"MLFLOW_TRACKING_URI": "javascript:alert(1)"})
    found = TrackerRunsFound(2.0, W1, (url, "javascript:alert(1)"))
    view = fold([JobStarted(1.0, "job-1", "yarn", "alice", job), found, found])
    run = {"task": "worker:1", "tracker": "W&B", "run": "x7k2", "url": url}
    shown = serializers.job(view, {}, 3.0)
    assert shown["tracker_runs"] == describe(view)["tracker_runs"] == [run]
    group = "https://wandb.ai/vision/digits/groups/job-1"
    assert shown["links"] == [{"name": "W&B", "url": group, "kind": "tracker"}]
    assert shown["tracker_run_count"] == 1
    assert list(tracker_lines(view)) == [f"worker:1 is tracked by W&B: {url}"]


def test_a_job_of_many_tasks_has_its_first_runs_and_how_many_there_are() -> None:
    job = JobSpec(roles={"worker": Role("w", replicas=60)})
    urls = ("https://a/1", "https://a/2", "javascript:alert(1)")
    found = [TrackerRunsFound(2.0, TaskId("worker", index), urls) for index in range(60)]
    view = fold([JobStarted(1.0, "job-1", "yarn", "alice", job), *found])
    shown = serializers.job(view, {}, 3.0)
    assert (len(shown["tracker_runs"]), shown["tracker_run_count"]) == (100, 120)
    assert len(describe(view)["tracker_runs"]) == 120


def test_a_role_without_a_tracker_hides_no_link_of_another() -> None:
    env = {"WANDB_ENTITY": "vision", "WANDB_PROJECT": "digits"}
    off = Role("w", env={"WANDB_MODE": "disabled", "WANDB_PROJECT": "other"})
    view = fold([JobStarted(1.0, "job-1", "yarn", "alice", JobSpec(roles={"worker": Role("w"), "ps": off}, env=env))])
    group = "https://wandb.ai/vision/digits/groups/job-1"
    assert serializers.job(view, {}, 3.0)["links"] == [{"name": "W&B", "url": group, "kind": "tracker"}]


def test_the_page_names_the_exception_that_the_sentence_names() -> None:
    shown = ("    f()", "    f()")  # the exception and its text are far above
    job = JobStarted(1.0, "job-1", "yarn", "alice", JobSpec(roles={"worker": Role("w", replicas=2)}))

    def named(exit: Exit) -> str:
        found = serializers.failure(fold([job, JobFinished(2.0, Outcome(State.FAILED, "x", W1, exit))]))
        assert found is not None
        return found["exception"]

    assert named(Exit("exit", 1, detail="exit code 1: E: x", lines=shown, exception="E: x")) == "E: x"
    assert named(Exit("exit", 1, lines=("    f()", "ValueError: x"))) == "ValueError: x", "as earlier versions wrote it"
    assert named(Exit("memory", lines=("    f()", "ValueError: x"))) == ""
