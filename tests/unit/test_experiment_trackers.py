"""Tests the variables that keep a job's runs together in Weights & Biases and MLflow."""

from __future__ import annotations

import json

import pytest

from howdah.executor.process.experiment_trackers import tracker_variables

TASK = {
    "HOWDAH_JOB_ID": "job-7",
    "HOWDAH_JOB_NAME": "digits",
    "HOWDAH_TASK": "worker:1",
    "HOWDAH_ROLE": "worker",
    "HOWDAH_WORLD_SIZE": "2",
    "HOWDAH_REPLICAS": "2",
}


def test_runs_of_a_job_are_a_group() -> None:
    assert tracker_variables({**TASK, "WANDB_API_KEY": "secret"}) == {
        "WANDB_RUN_GROUP": "job-7",
        "WANDB_JOB_TYPE": "worker",
        "WANDB_NAME": "digits worker:1",
    }
    found = tracker_variables({**TASK, "MLFLOW_TRACKING_URI": "http://mlflow"})
    assert list(found) == ["MLFLOW_RUN_CONTEXT"]
    assert json.loads(found["MLFLOW_RUN_CONTEXT"]) == {
        "mlflow.runName": "digits worker:1",
        "howdah_job_id": "job-7",
        "howdah_task": "worker:1",
    }


@pytest.mark.parametrize(
    ("sizes", "name"), [(("1", "1"), "digits"), (("1", "9"), "digits worker:1"), (("2", "1"), "digits worker:1")]
)
def test_a_task_that_is_alone_has_the_jobs_name(sizes: tuple[str, str], name: str) -> None:
    world = {"HOWDAH_WORLD_SIZE": sizes[0], "HOWDAH_REPLICAS": sizes[1]}
    assert tracker_variables({**TASK, **world, "WANDB_MODE": "offline"})["WANDB_NAME"] == name


def test_what_the_user_has_set_stays() -> None:
    own = {"WANDB_RUN_GROUP": "mine", "WANDB_NAME": "", "MLFLOW_RUN_CONTEXT": "{}"}
    assert tracker_variables({**TASK, **own}) == {"WANDB_JOB_TYPE": "worker"}


def test_nothing_is_set_for_a_tracker_that_is_not_used() -> None:
    assert tracker_variables(TASK) == {}
    assert tracker_variables({"WANDB_API_KEY": "secret"}) == {}
