"""Tests what TensorFlow, PyTorch and other programs are given about their world."""

from __future__ import annotations

import json
import socket

import pytest

from howdah.errors import SpecError
from howdah.frameworks import BUILT_IN, find, names, world_variables
from howdah.spec import JobSpec, Member, Role, TaskId, World


def world(**replicas: int) -> World:
    """Roles in the order given; every task on a host of its own name, port 5000 + its place."""
    tasks = [TaskId(role, index) for role, count in replicas.items() for index in range(count)]
    return World(3, tuple(Member(task, f"h-{task.slug}", {"main": 5000 + n}) for n, task in enumerate(tasks)))


def job(framework: str, *roles: str) -> JobSpec:
    return find(framework).expand(JobSpec({name: Role("true") for name in roles}, framework=framework))


def told(framework: str, where: World, task: str) -> dict[str, str]:
    return find(framework).environment(where, TaskId.parse(task))


class TestEvery:
    @pytest.mark.parametrize("name", sorted(BUILT_IN))
    def test_decides_what_was_left_open_once_and_for_all(self, name: str) -> None:
        expanded = job(name, "tensorboard", "ps", "worker", "chief", "evaluator")
        assert all(role.tracked is not None and role.on_failure for role in expanded.roles.values())
        assert find(name).expand(expanded) == expanded
        assert list(find(name).expand(expanded).roles) == list(expanded.roles)

    @pytest.mark.parametrize("name", sorted(BUILT_IN))
    def test_keeps_what_the_user_decided(self, name: str) -> None:
        spec = JobSpec({"ps": Role("x", tracked=True, on_failure="ignore"), "worker": Role("x", tracked=False)})
        roles = find(name).expand(spec).roles
        assert (roles["ps"].tracked, roles["ps"].on_failure, roles["worker"].tracked) == (True, "ignore", False)

    def test_unknown_names_get_the_nearest(self) -> None:
        with pytest.raises(SpecError, match=r"framework: is 'pytroch', known are .*did you mean 'pytorch'"):
            find("pytroch")
        assert set(names("pytorch")) == set(BUILT_IN)
        assert set(BUILT_IN) <= set(names("pytroch"))


class TestWorldVariables:
    def test_tell_the_task_its_place(self) -> None:
        where = World(
            2,
            (
                Member(TaskId("ps", 0), "a", {"main": 1}),
                Member(TaskId("worker", 0), "b", {"main": 2, "tensor-board": 3}),
                Member(TaskId("worker", 1), "c", {"main": 4}),
            ),
        )
        told = world_variables(where, TaskId("worker", 0), job_id="j", job_name="n", attempt=2)
        assert json.loads(told.pop("HOWDAH_WORLD")) == {
            "epoch": 2,
            "roles": {
                "ps": [{"host": "a", "ports": {"main": 1}}],
                "worker": [{"host": "b", "ports": {"main": 2, "tensor-board": 3}}, {"host": "c", "ports": {"main": 4}}],
            },
        }
        assert told == {
            "HOWDAH_JOB_ID": "j",
            "HOWDAH_JOB_NAME": "n",
            "HOWDAH_TASK": "worker:0",
            "HOWDAH_ROLE": "worker",
            "HOWDAH_INDEX": "0",
            "HOWDAH_REPLICAS": "2",
            "HOWDAH_RANK": "1",
            "HOWDAH_WORLD_SIZE": "3",
            "HOWDAH_EPOCH": "2",
            "HOWDAH_ATTEMPT": "2",
            "HOWDAH_PORT": "2",
            "HOWDAH_PORT_TENSOR_BOARD": "3",
        }

    def test_of_a_huge_gang_can_still_be_given_to_a_program(self) -> None:
        told = world_variables(world(worker=5000), TaskId("worker", 7), job_id="j", job_name="n", attempt=1)
        assert "HOWDAH_WORLD" not in told
        assert told["HOWDAH_WORLD_SIZE"] == "5000"


class TestTensorFlow:
    def test_workers_and_ps(self) -> None:
        told_ps = told("tensorflow", world(ps=1, worker=2), "worker:1")
        cluster = {"ps": ["h-ps-0:5000"], "worker": ["h-worker-0:5001", "h-worker-1:5002"]}
        assert json.loads(told_ps["TF_CONFIG"]) == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
        assert json.loads(told_ps["CLUSTER_SPEC"]) == json.loads(told_ps["TF_CLUSTER_DEF"]) == cluster
        assert (told_ps["TF_ROLE"], told_ps["TF_INDEX"]) == ("worker", "1")
        assert (told_ps["JOB_NAME"], told_ps["TASK_INDEX"]) == ("worker", "1")
        assert told_ps["LOCAL_ADDRESS"] == "h-worker-1:5002"

    def test_an_evaluator_is_told_the_cluster_but_is_not_in_it(self) -> None:
        where = world(chief=1, worker=1, ps=1, evaluator=1)
        for task in ("evaluator:0", "chief:0", "ps:0"):
            config = json.loads(told("tensorflow", where, task)["TF_CONFIG"])
            assert set(config["cluster"]) == {"chief", "worker", "ps"}
            assert config["task"] == {"type": task[:-2], "index": 0}

    def test_a_chief_with_an_evaluator_is_a_cluster(self) -> None:
        config = json.loads(told("tensorflow", world(chief=1, evaluator=1), "chief:0")["TF_CONFIG"])
        assert config["cluster"] == {"chief": ["h-chief-0:5000"]}

    @pytest.mark.parametrize("role", ["worker", "chief"])
    def test_a_single_task_gets_no_cluster(self, role: str) -> None:
        alone = told("tensorflow", world(**{role: 1, "tensorboard": 1}), f"{role}:0")
        assert not {"TF_CONFIG", "CLUSTER_SPEC", "TF_CLUSTER_DEF"} & set(alone)
        assert alone["TF_ROLE"] == role

    def test_roles_tensorflow_does_not_know_stay_out_of_its_configuration(self) -> None:
        where = world(worker=2, reader=1)
        assert set(json.loads(told("tensorflow", where, "worker:0")["TF_CONFIG"])["cluster"]) == {"worker"}
        reader = told("tensorflow", where, "reader:0")
        assert "TF_CONFIG" not in reader
        assert set(json.loads(reader["CLUSTER_SPEC"])) == {"worker", "reader"}

    @pytest.mark.parametrize(
        ("roles", "tracked"),
        [
            (("worker", "ps"), {"worker"}),
            (("chief", "worker"), {"chief", "worker"}),
            (("chief", "worker", "ps"), {"chief"}),
            (("master", "worker", "ps"), {"master", "worker"}),
            (("chief", "worker", "evaluator", "tensorboard"), {"chief", "worker"}),
        ],
    )
    def test_who_is_waited_for(self, roles: tuple[str, ...], tracked: set[str]) -> None:
        expanded = job("tensorflow", *roles)
        assert {name for name, role in expanded.roles.items() if role.tracked} == tracked

    def test_whose_failure_matters(self) -> None:
        roles = job("tensorflow", "chief", "ps", "evaluator", "tensorboard").roles
        assert [role.on_failure for role in roles.values()] == ["fail", "fail", "ignore", "ignore"]


class TestPyTorch:
    def test_ranks_start_with_the_chief_wherever_it_was_written(self) -> None:
        expanded = job("pytorch", "tensorboard", "other", "worker", "master")
        assert list(expanded.roles) == ["master", "worker", "other", "tensorboard"]
        assert [role.tracked for role in expanded.roles.values()] == [True, True, True, False]

    def test_every_rank_meets_at_rank_0(self) -> None:
        where = world(master=1, worker=2, tensorboard=1)
        assert told("pytorch", where, "worker:1") == {
            "MASTER_ADDR": "h-master-0",
            "MASTER_PORT": "5000",
            "INIT_METHOD": "tcp://h-master-0:5000",
            "RANK": "2",
            "GROUP_RANK": "2",
            "NODE_RANK": "2",
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "WORLD_SIZE": "3",
        }
        ranks = [told("pytorch", where, task)["RANK"] for task in ("master:0", "worker:0", "worker:1")]
        assert ranks == ["0", "1", "2"]
        assert "RANK" not in told("pytorch", where, "tensorboard:0")


def test_generic_adds_nothing() -> None:
    assert told("generic", world(worker=2), "worker:0") == {}


@pytest.mark.parametrize("reuseport", [0, 1])
def test_grpc_binds_a_port_that_is_held(reuseport: int) -> None:
    """TensorFlow's servers are gRPC's: this is why `hold_ports` is true there."""
    grpc = pytest.importorskip("grpc")
    from concurrent.futures import ThreadPoolExecutor

    with socket.socket() as held, ThreadPoolExecutor(1) as pool:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("0.0.0.0", 0))
        port = held.getsockname()[1]
        server = grpc.server(pool, options=[("grpc.so_reuseport", reuseport)])
        assert server.add_insecure_port(f"0.0.0.0:{port}") == port
        server.start()
        assert server.stop(None).wait(60), "gRPC's server has not stopped"
