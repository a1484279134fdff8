"""Tests that variables which howdah sets itself are named where a job sets them, too."""

from __future__ import annotations

import pytest

from howdah.client.overridden_variables import overridden_variables
from howdah.frameworks import names
from howdah.spec import JobSpec, Role


def named(job: JobSpec) -> list[str]:
    return [sentence.partition(" ")[0] for sentence in dict.fromkeys(overridden_variables(job))]


def test_what_the_framework_sets_is_named_and_the_rest_is_not() -> None:
    roles = {"worker": Role("true", 3, env={"MASTER_PORT": "1", "LR": "0.1"}), "ps": Role("true")}
    assert named(JobSpec(roles, framework="pytorch", env={"HOWDAH_RANK": "7", "NCCL_DEBUG": "INFO"})) == [
        "env.HOWDAH_RANK",
        "roles.worker.env.MASTER_PORT",
    ]
    assert named(JobSpec(roles, env={"MASTER_ADDR": "here", "TF_CONFIG": "{}"})) == []


@pytest.mark.parametrize("framework", sorted(names()))
def test_each_framework_can_be_asked(framework: str) -> None:
    roles = {name: Role("true", 2) for name in ("chief", "worker")}
    assert "env.HOWDAH_TASK" in named(JobSpec(roles, framework=framework, env={"HOWDAH_TASK": "x"}))


def test_a_large_gang_costs_nothing() -> None:
    assert named(JobSpec({"worker": Role("true", 10_000_000)}, env={"HOWDAH_INDEX": "1"})) == ["env.HOWDAH_INDEX"]
