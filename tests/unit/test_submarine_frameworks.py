"""Tests the variables that Submarine's programs read, and links to a task's pages."""

from __future__ import annotations

import json

from howdah.frameworks import find
from howdah.spec import JobSpec, Role, TaskId
from howdah.spec.links import resolve_links
from howdah.spec.task import Member, World
from howdah.spec.view import TaskView


def world(**roles: int) -> World:
    tasks = [TaskId(role, index) for role, count in roles.items() for index in range(count)]
    return World(1, tuple(Member(task, f"h{n}", {"main": n}) for n, task in enumerate(tasks)))


def told(framework: str, task: str, **roles: int) -> dict[str, str]:
    return find(framework).environment(world(**roles), TaskId.parse(task))


def test_who_a_task_is() -> None:
    for task, kind in (("master:0", "PRIMARY_WORKER"), ("worker:1", "WORKER"), ("ps:0", "PS")):
        found = told("submarine-tensorflow", task, master=1, worker=2, ps=1)
        assert (found["_TASK_TYPE"], found["_TASK_INDEX"]) == (kind, task[-1])
    assert told("submarine", "tensorboard:0", tensorboard=1) == {"_TASK_TYPE": "TENSORBOARD", "_TASK_INDEX": "0"}


def test_tf_config_is_theirs_with_servers() -> None:
    config = json.loads(told("submarine-tensorflow", "worker:1", master=1, worker=2, ps=1)["TF_CONFIG"])
    cluster = {"master": ["h0:0"], "worker": ["h1:1", "h2:2"], "ps": ["h3:3"]}
    assert config == {"cluster": cluster, "task": {"type": "worker", "index": 1}, "environment": "cloud"}


def test_tf_config_has_a_chief_without_servers() -> None:
    config = json.loads(told("submarine-tensorflow", "master:0", master=1, worker=1, tensorboard=1)["TF_CONFIG"])
    cluster = {"chief": ["h0:0"], "worker": ["h1:1"]}
    assert config == {"cluster": cluster, "task": {"type": "chief", "index": 0}, "environment": "cloud"}
    assert "TF_CONFIG" not in told("submarine-tensorflow", "master:0", master=1)


def test_torch_has_a_group() -> None:
    found = told("submarine-pytorch", "worker:0", master=1, worker=1)
    assert (found["RANK"], found["WORLD_SIZE"], found["MASTER_ADDR"], found["_TASK_TYPE"]) == ("1", "2", "h0", "WORKER")


def test_who_is_waited_for() -> None:
    roles = {name: Role("x") for name in ("master", "worker", "ps")}
    job = find("submarine-tensorflow").expand(JobSpec(roles))
    assert [role.tracked for role in job.roles.values()] == [True, True, False]
    assert find("submarine-tensorflow").expand(job) == job


def test_links_have_the_addresses_of_their_tasks() -> None:
    tasks = {
        TaskId("master", 0): TaskView(TaskId("master", 0), host="h", ports={"main": 7}),
        TaskId("ps", 0): TaskView(TaskId("ps", 0)),
    }
    links = {
        "a": "http://{master:0}:80",
        "b": "http://{master:0}:{master:0:main}/",
        "c": "{ps:0}",
        "d": "{x:1}",
        "e": "hdfs://x",
    }
    links["f"] = "{master:0:other}"
    assert resolve_links(links, tasks) == {"a": "http://h:80", "b": "http://h:7/", "e": "hdfs://x"}
