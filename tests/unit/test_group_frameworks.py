"""Tests what JAX, XGBoost, LightGBM and MXNet are given about their world, and the tasks that are added for them."""

from __future__ import annotations

import pytest

from howdah.frameworks import files_of, find
from howdah.spec import Input, JobSpec, Member, Resources, Role, TaskId, World
from howdah.spec.validation import find_mistakes

NAMES = ["jax", "xgboost", "lightgbm", "mxnet"]


def job(framework: str, *roles: str, **fields: object) -> JobSpec:
    spec = JobSpec({name: Role("train") for name in roles}, framework=framework, **fields)  # type: ignore[arg-type]
    return find(framework).expand(spec)


def world(spec: JobSpec, **replicas: int) -> World:
    """The world of an expanded job; each task on a host of its own name, 10.0.0.<place>, port 5000 + its place."""
    tasks = [TaskId(role, index) for role in spec.roles for index in range(replicas.get(role, 1))]
    members = (Member(task, f"h-{task.slug}", {"main": 5000 + n}, f"10.0.0.{n}") for n, task in enumerate(tasks))
    return World(1, tuple(members))


def told(spec: JobSpec, where: World, task: str) -> dict[str, str]:
    return find(spec.framework).environment(where, TaskId.parse(task))


class TestEvery:
    @pytest.mark.parametrize("name", NAMES)
    def test_ranks_start_with_the_chief_and_side_roles_come_last(self, name: str) -> None:
        roles = job(name, "tensorboard", "other", "worker", "chief", "evaluator").roles
        ranked = [role for role in roles if role not in ("tracker", "scheduler")]
        assert ranked == ["chief", "worker", "other", "tensorboard", "evaluator"]
        assert [roles[role].tracked for role in ranked] == [True, True, True, False, False]
        assert [roles[role].on_failure for role in ranked] == ["fail", "fail", "fail", "ignore", "ignore"]

    @pytest.mark.parametrize("name", NAMES)
    def test_an_expanded_job_is_a_job_without_mistakes_and_stays_as_it_is(self, name: str) -> None:
        expanded = job(name, "server", "worker", inputs=(Input("in"),))
        assert not find_mistakes(expanded)
        assert find(name).expand(expanded) == expanded

    @pytest.mark.parametrize("name", NAMES)
    def test_a_task_outside_the_group_does_not_fail(self, name: str) -> None:
        """Side roles alone, a stage of a job before the group's, a job without a gang: no failure, at least."""
        where = World(1, (Member(TaskId("tensorboard", 0), "h", {"main": 1}),))
        assert isinstance(find(name).environment(where, TaskId("tensorboard", 0)), dict)

    @pytest.mark.parametrize(("name", "helper"), [("xgboost", "tracker"), ("mxnet", "scheduler")])
    def test_a_helper_is_small_gets_no_data_and_comes_with_its_group(self, name: str, helper: str) -> None:
        inputs = (Input("in"), Input("test", roles=("worker",)))
        roles = {"prepare": Role("p"), "worker": Role("w", after=("prepare",)), "server": Role("s", after=("prepare",))}
        spec = find(name).expand(JobSpec(roles, framework=name, inputs=inputs))
        added = spec.roles[helper]
        assert (added.tracked, added.on_failure, added.after, added.replicas) == (False, "fail", ("prepare",), 1)
        assert added.resources.memory_mib <= 512
        assert added.command[:2] == ("python3", "-c")
        assert not {helper, "ps", "evaluator"} & set(spec.inputs[0].roles)
        assert "worker" in spec.inputs[0].roles
        assert spec.inputs[1].roles == ("worker",)

    @pytest.mark.parametrize(("name", "helper"), [("xgboost", "tracker"), ("mxnet", "scheduler")])
    def test_a_helper_of_the_users_own_is_kept(self, name: str, helper: str) -> None:
        own = Role("mine", resources=Resources(4096))
        spec = find(name).expand(JobSpec({helper: own, "worker": Role("w"), "server": Role("s")}, framework=name))
        assert (spec.roles[helper].command, spec.roles[helper].resources.memory_mib) == ("mine", 4096)
        assert next(iter(spec.roles)) == "worker"

    @pytest.mark.parametrize("name", ["xgboost", "mxnet"])
    def test_no_helper_where_each_task_is_alone(self, name: str) -> None:
        spec = job(name, "server", "worker", gang=False)
        assert set(spec.roles) == {"server", "worker"}
        assert told(spec, world(spec), "worker:0") == {}


class TestJax:
    def test_initialize_finds_everything(self) -> None:
        spec = job("jax", "worker")
        assert told(spec, world(spec, worker=3), "worker:2") == {
            "JAX_COORDINATOR_ADDRESS": "h-worker-0:5000",
            "JAX_NUM_PROCESSES": "3",
            "JAX_PROCESS_ID": "2",
            "OMPI_MCA_orte_hnp_uri": "howdah",
            "OMPI_COMM_WORLD_SIZE": "3",
            "OMPI_COMM_WORLD_RANK": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        }

    def test_side_roles_have_no_rank(self) -> None:
        spec = job("jax", "tensorboard", "worker")
        assert set(told(spec, world(spec), "tensorboard:0")) == {"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES"}
        assert told(spec, world(spec), "worker:0")["JAX_NUM_PROCESSES"] == "1"

    def test_a_process_sees_all_its_gpus(self) -> None:
        roles = {
            "chief": Role("x", resources=Resources(gpus=1)),
            "worker": Role("x", resources=Resources(gpus=3)),
            "other": Role("x", resources=Resources(gpus=2), env={"JAX_LOCAL_DEVICE_IDS": "1"}),
        }
        expanded = find("jax").expand(JobSpec(roles, framework="jax")).roles
        assert [role.env.get("JAX_LOCAL_DEVICE_IDS") for role in expanded.values()] == [None, "0,1,2", "1"]


class TestXGBoost:
    def test_workers_meet_at_the_tracker(self) -> None:
        spec = job("xgboost", "worker")
        where = world(spec, worker=2)
        meeting = {
            "DMLC_TRACKER_URI": "10.0.0.2",
            "DMLC_TRACKER_PORT": "5002",
            "DMLC_NUM_WORKER": "2",
            "DMLC_NUM_SERVER": "0",
        }
        assert told(spec, where, "tracker:0") == meeting
        assert told(spec, where, "worker:1") == {**meeting, "DMLC_ROLE": "worker", "DMLC_TASK_ID": "1"}

    def test_task_ids_sort_as_text(self) -> None:
        spec = job("xgboost", "tensorboard", "worker")
        where = world(spec, worker=101)
        ids = [told(spec, where, f"worker:{index}")["DMLC_TASK_ID"] for index in range(101)]
        assert ids == sorted(ids)
        assert [int(number) for number in ids] == list(range(101))
        assert told(spec, where, "worker:5")["DMLC_NUM_WORKER"] == "101"

    def test_the_trackers_program_is_python(self) -> None:
        program = job("xgboost", "worker").roles["tracker"].command[2]
        assert compile(program, "tracker", "exec")


class TestLightGBM:
    def test_machines_are_numbers(self) -> None:
        spec = job("lightgbm", "worker", "tensorboard")
        where = world(spec, worker=2)
        listed = {
            "LIGHTGBM_MACHINES": "10.0.0.0:5000,10.0.0.1:5001",
            "LIGHTGBM_NUM_MACHINES": "2",
            "LIGHTGBM_NUM_MACHINE": "2",
        }
        own = {"LIGHTGBM_LOCAL_LISTEN_PORT": "5001", "LIGHTGBM_RANK": "1"}
        assert told(spec, where, "worker:1") == {**listed, **own}
        assert told(spec, where, "tensorboard:0") == listed
        files = files_of(find("lightgbm"), where, TaskId("worker", 0))
        assert files == {"machines.txt": "10.0.0.0 5000\n10.0.0.1 5001\n"}

    def test_a_host_whose_number_is_unknown_is_called_by_its_name(self) -> None:
        where = World(1, (Member(TaskId("worker", 0), "node1", {"main": 7}),))
        assert told(job("lightgbm", "worker"), where, "worker:0")["LIGHTGBM_MACHINES"] == "node1:7"


class TestMXNet:
    def test_workers_servers_and_the_scheduler(self) -> None:
        spec = job("mxnet", "ps", "worker")
        assert list(spec.roles) == ["worker", "ps", "scheduler"]
        where = world(spec, worker=2, ps=2)
        meeting = {
            "DMLC_PS_ROOT_URI": "10.0.0.4",
            "DMLC_PS_ROOT_PORT": "5004",
            "DMLC_NUM_WORKER": "2",
            "DMLC_NUM_SERVER": "2",
            "DMLC_LOCAL": "0",
        }
        roles = {
            "worker:1": {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": "1", "DMLC_NODE_HOST": "10.0.0.1"},
            "ps:1": {"DMLC_ROLE": "server", "DMLC_SERVER_ID": "1", "DMLC_NODE_HOST": "10.0.0.3"},
            "scheduler:0": {"DMLC_ROLE": "scheduler", "DMLC_NODE_HOST": "10.0.0.4"},
        }
        for task, own in roles.items():
            assert told(spec, where, task) == {**meeting, **own}

    def test_without_servers_a_worker_is_alone(self) -> None:
        spec = job("mxnet", "worker")
        assert list(spec.roles) == ["worker"]
        assert told(spec, world(spec), "worker:0") == {}
