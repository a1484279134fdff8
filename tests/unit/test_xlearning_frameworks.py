"""Tests the variables that programs written for XLearning and HBox are given, in their exact shapes."""

from __future__ import annotations

import json

import pytest

from howdah.compat.xlearning.submit import HboxSubmit
from howdah.executor.environment import with_log_directory
from howdah.frameworks import BUILT_IN, files_of, find
from howdah.master.decisions.outputs import commit_request
from howdah.spec import Exit, Input, JobSpec, Member, Role, State, TaskId, World
from howdah.testing import Gang

# Those of MPI are as the frameworks they stand on.
FRAMEWORKS = [name for name in BUILT_IN if name.startswith("xlearning") and not name.endswith(("mpi", "horovod"))]


def world(**replicas: int) -> World:
    """Roles in the order given; hosts by name and number, port 5000 + place."""
    tasks = [TaskId(role, index) for role, count in replicas.items() for index in range(count)]
    members = [Member(t, f"h-{t.slug}", {"main": 5000 + n}, f"10.0.0.{n}") for n, t in enumerate(tasks)]
    return World(1, tuple(members))


def told(framework: str, where: World, task: str) -> dict[str, str]:
    return find(f"xlearning{framework}").environment(where, TaskId.parse(task))


def expanded(framework: str, *roles: str) -> JobSpec:
    spec = JobSpec({name: Role("true") for name in roles}, framework=f"xlearning{framework}", inputs=(Input("/a"),))
    return find(spec.framework).expand(spec)


class TestEvery:
    def test_knows_its_index_and_its_log_directory(self) -> None:
        found = told("", world(worker=2), "worker:1")
        assert found == {
            "INDEX": "1",
            "HBOX_CONTAINER_LOG_DIR": "<LOG_DIR>",
            "XLEARNING_CONTAINER_LOG_DIR": "<LOG_DIR>",
        }
        assert with_log_directory(found, "/logs/c1")["XLEARNING_CONTAINER_LOG_DIR"] == "/logs/c1"

    @pytest.mark.parametrize("name", FRAMEWORKS)
    def test_servers_and_helpers_are_not_waited_for(self, name: str) -> None:
        servers = [] if name in ("xlearning-xgboost", "xlearning-lightgbm") else ["ps"]
        job = expanded(name.removeprefix("xlearning"), "worker", "tensorboard", "evaluator", *servers)
        assert [role for role, it in job.roles.items() if it.tracked] == ["worker"]
        assert job.roles["tensorboard"].on_failure == "ignore"
        assert find(name).expand(job) == job


class TestWhatIsWaitedForAfterTheWorkers:
    EVALUATOR = "--app-type tensorflow --worker-num 2 --ps-num 1 --tf-evaluator true"
    SERVERS = "--app-type distlightlda --ps-num 1"

    @pytest.mark.parametrize(("line", "last"), [(EVALUATOR, "evaluator:0"), (SERVERS, "ps:0")])
    def test_its_output_is_kept(self, line: str, last: str) -> None:
        gang = formed(line)
        gang.end("worker:0", made=(0,))
        assert gang.state.open
        gang.end(last, made=(0,))
        assert gang.state.outcome is not None
        assert gang.state.outcome.state is State.SUCCEEDED
        (output,) = commit_request(gang.state).outputs
        assert {name for _, name in output.parts} == {"worker-0", last.replace(":", "-")}

    def test_an_evaluator_that_fails_costs_nothing(self) -> None:
        gang = formed(self.EVALUATOR)
        gang.end("evaluator:0", Exit("exit", 1))
        gang.end("worker:0", made=(0,))
        assert gang.state.outcome is not None
        assert gang.state.outcome.state is State.SUCCEEDED

    def test_none_is_waited_for_without_end(self) -> None:
        gang = late(self.EVALUATOR)
        assert gang.state.tasks[TaskId("evaluator", 0)].stopped
        assert gang.state.open
        gang = late(self.SERVERS)
        assert gang.state.outcome is not None
        assert gang.state.outcome.state is State.FAILED


def formed(line: str) -> Gang:
    spec = HboxSubmit({}).parse(f"{line} --output /o#out --queue q true".split()).job
    gang = Gang(find(spec.framework).expand(spec))
    gang.form()
    return gang


def late(line: str) -> Gang:
    """A gang whose worker has ended an hour ago, and whose other programs run."""
    gang = formed(line)
    gang.end("worker:0", made=(0,))
    gang.now += 3601
    for task in gang.state.tasks.values():
        if task.exit is None:
            gang.run(str(task.id))
    gang.wait(0)
    return gang


class TestTensorFlow:
    def test_shapes(self) -> None:
        found = told("-tensorflow", world(worker=2, ps=1), "ps:0")
        cluster = {"worker": ["h-worker-0:5000", "h-worker-1:5001"], "ps": ["h-ps-0:5002"]}
        assert json.loads(found["TF_CLUSTER_DEF"]) == cluster
        assert found["TF_CLUSTER_DEF"] == found["TN_CLUSTER_DEF"]
        assert found["TF_CONFIG"].startswith('{"cluster":{"worker":["h-worker-0:5000",')
        assert json.loads(found["TF_CONFIG"])["task"] == {"type": "ps", "index": 0}
        assert (found["TF_ROLE"], found["TF_INDEX"], found["TN_ROLE"], found["TN_INDEX"]) == ("ps", "0", "ps", "0")
        assert found["LOCAL_ADDRESS"] == "h-ps-0:5002"

    def test_a_chief_of_another_size_is_worker_0(self) -> None:
        where = world(chief=1, worker=2, ps=1)
        chief, last = told("-tensorflow", where, "chief:0"), told("-tensorflow", where, "worker:1")
        workers = ["h-chief-0:5000", "h-worker-0:5001", "h-worker-1:5002"]
        assert json.loads(chief["TF_CLUSTER_DEF"]) == {"worker": workers, "ps": ["h-ps-0:5003"]}
        assert (chief["TF_ROLE"], chief["TF_INDEX"], chief["INDEX"]) == ("worker", "0", "0")
        assert (last["TF_ROLE"], last["TF_INDEX"], last["INDEX"]) == ("worker", "2", "2")
        assert json.loads(last["TF_CONFIG"])["task"] == {"type": "worker", "index": 2}
        assert last["LOCAL_ADDRESS"] == "h-worker-1:5002"

    def test_an_evaluator_is_in_the_cluster_of_strategies_alone(self) -> None:
        where = world(worker=1, evaluator=1, ps=1)
        assert "evaluator" not in json.loads(told("-tensorflow", where, "worker:0")["TF_CLUSTER_DEF"])
        strategy = told("-tensorflow-strategy", where, "evaluator:0")
        assert json.loads(strategy["TF_CLUSTER_DEF"])["evaluator"] == ["h-evaluator-0:5001"]
        assert json.loads(strategy["TF_CONFIG"])["task"] == {"type": "evaluator", "index": 0}

    def test_workers_alone_are_a_cluster_without_servers(self) -> None:
        config = json.loads(told("-tensorflow-strategy", world(worker=2), "worker:1")["TF_CONFIG"])
        assert config["cluster"] == {"worker": ["h-worker-0:5000", "h-worker-1:5001"]}

    @pytest.mark.parametrize(("framework", "workers"), [("-tensorflow-single", 3), ("-tensorflow", 1)])
    def test_single_has_no_cluster(self, framework: str, workers: int) -> None:
        found = told(framework, world(worker=workers), "worker:0")
        assert not {"TF_CONFIG", "TF_CLUSTER_DEF", "TN_CLUSTER_DEF"} & set(found)
        assert (found["TF_ROLE"], found["TF_INDEX"]) == ("worker", "0")

    def test_tensor2tensor_calls_workers_masters_and_hosts_what_they_are(self) -> None:
        where = world(worker=2, ps=1)
        config = json.loads(told("-tensor2tensor", where, "worker:1")["TF_CONFIG"])
        assert config == {
            "cluster": {"master": ["h-worker-0:5000", "h-worker-1:5001"], "ps": ["h-ps-0:5002"]},
            "task": {"type": "master", "index": 1},
            "environment": "cloud",
        }
        assert told("-tensor2tensor", where, "worker:1")["TF_ROLE"] == "worker"


class TestServers:
    def test_mxnet(self) -> None:
        where = world(worker=2, ps=1, scheduler=1)
        worker, server = told("-mxnet", where, "worker:1"), told("-mxnet", where, "ps:0")
        assert (worker["DMLC_PS_ROOT_URI"], worker["DMLC_PS_ROOT_PORT"]) == ("10.0.0.3", "5003")
        assert (worker["DMLC_NUM_WORKER"], worker["DMLC_NUM_SERVER"]) == ("2", "1")
        assert (worker["DMLC_ROLE"], worker["DMLC_WORKER_ID"]) == ("worker", "1")
        assert (server["DMLC_ROLE"], server["DMLC_SERVER_ID"]) == ("server", "0")
        assert told("-mxnet", where, "scheduler:0")["DMLC_ROLE"] == "scheduler"

    def test_xflow(self) -> None:
        where = world(worker=2, ps=1, scheduler=1)
        profiles = [told("-xflow", where, task).get("HEAPPROFILE") for task in ("worker:1", "ps:0", "scheduler:0")]
        assert profiles == ["./W1", "./S0", None]

    def test_xgboost(self) -> None:
        found = told("-xgboost", world(worker=3, tracker=1), "worker:2")
        expected = {"DMLC_TRACKER_URI": "10.0.0.3", "DMLC_TRACKER_PORT": "5003", "DMLC_NUM_WORKER": "3"}
        assert expected.items() <= found.items()
        assert (found["DMLC_TASK_ID"], found["DMLC_ROLE"]) == ("2", "worker")
        assert "tracker" in expanded("-xgboost", "worker").roles

    def test_lightgbm(self) -> None:
        where = world(worker=2)
        found = told("-lightgbm", where, "worker:1")
        assert (found["LIGHTGBM_NUM_MACHINE"], found["LIGHTGBM_LOCAL_LISTEN_PORT"]) == ("2", "5001")
        files = files_of(find("xlearning-lightgbm"), where, TaskId("worker", 1))
        assert files == {"lightGBMlist.txt": "10.0.0.0 5000\n10.0.0.1 5001\n"}

    def test_lightlda(self) -> None:
        where, framework = world(worker=1, ps=2), find("xlearning-lightlda")
        server = told("-lightlda", where, "ps:1")
        assert server["LIGHTLDA_SERVER_ENDPOINT"] == "10.0.0.2:5002"
        assert (server["LIGHTLDA_ROLE"], server["LIGHTLDA_RANK"]) == ("ps", "1")
        worker = told("-lightlda", where, "worker:0")
        assert (worker["LIGHTLDA_WORKER_NUM"], worker["LIGHTLDA_SERVER_NUM"]) == ("1", "2")
        text = "0 10.0.0.1:5001\n1 10.0.0.2:5002\n"
        assert files_of(framework, where, TaskId("worker", 0)) == {
            "lightLDAEndPoints.txt": text,
            "lightLdaEndPoints.txt": text,
        }
        assert files_of(framework, where, TaskId("ps", 0)) == {}

    def test_xdl(self) -> None:
        where = world(worker=2, ps=1, scheduler=1)
        assert told("-xdl", where, "scheduler:0")["PS_NUM"] == "1"
        worker = told("-xdl", where, "worker:1")
        assert (worker["TASK_NAME"], worker["TASK_INDEX"], worker["TASK_NUM"]) == ("worker", "1", "2")
        assert expanded("-xdl", "worker", "ps", "scheduler").inputs[0].roles == ("worker",)


def test_pytorch() -> None:
    found = told("-pytorch", world(worker=2), "worker:1")
    assert found["INIT_METHOD"] == "tcp://h-worker-0:5000"
    assert (found["master_addr"], found["master_port"]) == ("h-worker-0", "5000")
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("h-worker-0", "5000")
    assert (found["RANK"], found["WORLD_SIZE"]) == ("1", "2")


def test_a_framework_without_files_has_none() -> None:
    assert files_of(find("generic"), world(worker=1), TaskId("worker", 0)) == {}


@pytest.mark.parametrize("name", ["-mpi", "-horovod"])
def test_who_was_started_by_mpiexec_counts_from_one(name: str) -> None:
    """The 0th was mpiexec itself."""
    beside = {"rendezvous": 1} if name == "-horovod" else {}
    found = told(name, world(worker=2, **beside), "worker:1")
    assert (found["INDEX"], found["TF_INDEX"]) == ("2", "2")
