"""Tests the variables that keep a job's runs together in Weights & Biases and MLflow, and what addresses tell."""

from __future__ import annotations

import json

import pytest

from howdah.executor.process.experiment_trackers import tracker_variables
from howdah.spec.tracker_runs import TrackerRun, public_address, tracker_pages, tracker_run

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


@pytest.mark.parametrize(
    ("url", "tracker", "run"),
    [
        ("https://wandb.ai/vision/digits/runs/x7k2?nw=1", "W&B", "x7k2"),
        ("http://mlflow:5000/#/experiments/1/runs/0af3", "MLflow", "0af3"),
        ("https://a.cloud.databricks.com/ml/experiments/7/runs/0af3?o=1", "MLflow", "0af3"),
        ("http://tracker:8000/r/9", "tracker:8000", ""),
    ],
)
def test_an_address_tells_tracker_and_run(url: str, tracker: str, run: str) -> None:
    assert tracker_run(url) == TrackerRun(tracker, run, url)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://wandb.ai/ann/tokenizer-7b/runs/x7k2", "https://wandb.ai/ann/tokenizer-7b/runs/x7k2"),
        ("http://m:5000/#/experiments/1/runs/0af3?token=x", "http://m:5000/#/experiments/1/runs/0af3"),
        ("https://a.b/?o=17#mlflow/experiments/7/runs/0a", "https://a.b/?o=17#mlflow/experiments/7/runs/0a"),
        ("https://a.b/r?apiKey=x&o=17&o=z", "https://a.b/r?o=17"),
        ("https://a.b/r?p=password&sig=x#access_token=x", "https://a.b/r"),
        ("https://a.b/r;jsessionid=x", "https://a.b/r"),
        ("http://[::1]:5000/r", "http://[::1]:5000/r"),
        ("https://a.b/api_key=abcdef/r", ""),
        ("https://ann:pw@a.b/r", ""),
        ("https://ann@a.b/r", ""),
        ("https://ann:pw;x@a.b/r", ""),
        ("https://a.b/r\x9b2J", ""),
        ("https://a.b/r x", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_an_address_is_shown_without_what_opens_the_tracker(url: str, public: str) -> None:
    assert public_address(url) == public
    assert public_address(public) == public


def test_variables_tell_where_a_jobs_runs_are() -> None:
    env = {"MLFLOW_TRACKING_URI": "http://mlflow:5000", "WANDB_ENTITY": "vision", "WANDB_PROJECT": "a b"}
    assert tracker_pages(env, "job-7") == {
        "MLflow": "http://mlflow:5000",
        "W&B": "https://wandb.ai/vision/a%20b/groups/job-7",
    }
    own = {**env, "WANDB_BASE_URL": "https://w.example/", "WANDB_RUN_GROUP": "mine"}
    assert tracker_pages(own, "job-7")["W&B"] == "https://w.example/vision/a%20b/groups/mine"


def test_variables_tell_where_trackio_shows_runs() -> None:
    space, server = "https://huggingface.co/spaces/vision/digits", "http://trackio:7860"
    assert tracker_pages({"TRACKIO_SPACE_ID": "vision/digits"}, "job-7") == {"Trackio": space}
    assert tracker_pages({"TRACKIO_SERVER_URL": server}, "job-7") == {"Trackio": server}
    both = {"TRACKIO_SPACE_ID": "vision/digits", "TRACKIO_SERVER_URL": server}
    assert tracker_pages(both, "job-7") == {"Trackio": space}, "as Trackio itself chooses"


@pytest.mark.parametrize(
    "env",
    [
        {"MLFLOW_TRACKING_URI": "sqlite:///mlflow.db"},
        {"MLFLOW_TRACKING_URI": "https://ann:password@mlflow"},
        {"MLFLOW_TRACKING_URI": "https://mlflow/?token=abc"},
        {"WANDB_ENTITY": "vision", "WANDB_PROJECT": "digits", "WANDB_BASE_URL": "https://ann:password@w"},
        {"WANDB_ENTITY": "vision", "WANDB_PROJECT": "digits", "WANDB_BASE_URL": "https://w/?token=abc"},
        {"WANDB_PROJECT": "digits"},
        {"TRACKIO_SERVER_URL": "http://trackio:7860/?write_token=abc"},
        {"TRACKIO_SPACE_ID": "digits", "TRACKIO_SERVER_URL": "http://trackio:7860"},
        {"TRACKIO_SPACE_ID": "vision/digits?a=b"},
        {"WANDB_ENTITY": "vision", "WANDB_PROJECT": "digits", "WANDB_MODE": "offline"},
    ],
)
def test_a_page_that_nobody_can_open_or_with_a_secret_is_not_linked(env: dict[str, str]) -> None:
    assert tracker_pages(env, "job-7") == {}
