"""Tests the variables that TonY's programs are given, with TonY's names and shapes."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from howdah.compat.tony.horovod import RELAY, RENDEZVOUS
from howdah.frameworks import find
from howdah.sandbox.addresses import free_port
from howdah.spec import Exit, JobSpec, Member, Role, TaskId, World
from howdah.testing import Gang, job


def world(**replicas: int) -> World:
    tasks = [TaskId(role, index) for role, count in replicas.items() for index in range(count)]
    members = (Member(task, f"10.0.0.{n}", {"main": 5000 + n, "tensorboard": 6000 + n}) for n, task in enumerate(tasks))
    return World(2, tuple(members), "application_1_2")


def told(framework: str, where: World, task: str) -> dict[str, str]:
    return find(framework).environment(where, TaskId.parse(task))


class TestEveryTask:
    def test_knows_itself(self) -> None:
        assert told("tony", world(worker=2), "worker:1") == {
            "JOB_NAME": "worker",
            "TASK_INDEX": "1",
            "JOB_ID": "application_1_2",
            "APPID": "application_1_2",
            "SESSION_ID": "0",
            "ATTEMPT_NUMBER": "0",
        }

    @pytest.mark.parametrize(
        ("where", "chiefs"),
        [
            (world(chief=2, worker=2), {"chief:0", "chief:1"}),
            (world(ps=1, worker=2), {"worker:0"}),
            (world(head=1), set()),
        ],
    )
    def test_one_role_leads(self, where: World, chiefs: set[str]) -> None:
        tasks = [member.task for member in where.members]
        leading = {str(task) for task in tasks if "IS_CHIEF" in told("tony", where, str(task))}
        with_port = {str(task) for task in tasks if "TB_PORT" in told("tony", where, str(task))}
        assert leading == with_port == chiefs

    def test_the_sidecar_has_the_port(self) -> None:
        where = world(worker=1, tensorboard=1)
        assert told("tony", where, "tensorboard:0")["TB_PORT"] == "6001"

    @pytest.mark.parametrize("role", ["driver", "notebook", "preprocess"])
    def test_alone_its_port_is_that_of_the_page(self, role: str) -> None:
        assert told("tony", world(**{role: 1}), f"{role}:0")["TB_PORT"] == "5000"


class TestStartedAgain:
    """In worlds that the master's own code formed."""

    def test_a_task_of_its_own_is_no_retry_of_another(self) -> None:
        gang = Gang(job(roles={"worker": Role("w", replicas=3)}, gang=False, retries=1))
        gang.form()
        assert sessions(gang, "worker:0", "worker:1", "worker:2") == [("0", "0", None)] * 3
        gang.end("worker:1", Exit("exit", 1))
        gang.join("worker:1")
        assert sessions(gang, "worker:1", "worker:2") == [("1", "1", "1"), ("0", "0", None)]

    def test_a_later_stage_is_none_either(self) -> None:
        gang = Gang(job(roles={"prepare": Role("p"), "worker": Role("w", after=("prepare",))}, retries=1))
        gang.grant("prepare")
        gang.join("prepare:0")
        gang.end("prepare:0")
        gang.grant("worker")
        gang.join("worker:0")
        assert sessions(gang, "prepare:0", "worker:0") == [("0", "0", None)] * 2

    def test_a_gang_counts_together(self) -> None:
        gang = Gang(job(roles={"worker": Role("w", replicas=2)}, retries=2))
        gang.form()
        for again in ("1", "2"):
            gang.end("worker:1", Exit("exit", 1))
            gang.wait(3)
            gang.join("worker:0")
            gang.join("worker:1")
            assert sessions(gang, "worker:0", "worker:1") == [(again, again, again)] * 2
        gang.take_over()
        assert sessions(gang, "worker:0", "worker:1") == [("2", "2", "2")] * 2


def sessions(gang: Gang, *tasks: str) -> list[tuple[str | None, ...]]:
    found = []
    for task in tasks:
        formed = gang.state.tasks[TaskId.parse(task)].world
        assert formed is not None
        variables = told("tony", formed, task)
        found.append(tuple(variables.get(name) for name in ("SESSION_ID", "ATTEMPT_NUMBER", "NUM_AM_RETRIES")))
    return found


class TestTensorFlow:
    where = world(ps=1, worker=2, evaluator=1, tensorboard=1)

    def test_cluster_spec_has_every_role(self) -> None:
        spec = json.loads(told("tony-tensorflow", self.where, "worker:0")["CLUSTER_SPEC"])
        assert list(spec) == ["ps", "worker", "evaluator", "tensorboard"]
        assert spec["worker"] == ["10.0.0.1:5001", "10.0.0.2:5002"]

    def test_an_evaluator_is_in_its_own_tf_config_alone(self) -> None:
        workers = json.loads(told("tony-tensorflow", self.where, "worker:1")["TF_CONFIG"])
        assert set(workers["cluster"]) == {"ps", "worker"}
        assert workers["task"] == {"type": "worker", "index": 1}
        evaluators = json.loads(told("tony-tensorflow", self.where, "evaluator:0")["TF_CONFIG"])
        assert set(evaluators["cluster"]) == {"ps", "worker", "evaluator"}


def test_pytorch_meets_at_the_first_worker() -> None:
    where = world(worker=2)
    second = told("tony-pytorch", where, "worker:1")
    assert (second["INIT_METHOD"], second["RANK"], second["WORLD"]) == ("tcp://10.0.0.0:5000", "1", "2")
    assert (second["MASTER_ADDR"], second["MASTER_PORT"], second["WORLD_SIZE"]) == ("10.0.0.0", "5000", "2")


def test_mxnet_meets_at_the_scheduler() -> None:
    spec = JobSpec({name: Role("x", replicas=n) for name, n in (("scheduler", 1), ("server", 2), ("worker", 2))})
    order = {name: role.replicas for name, role in find("tony-mxnet").expand(spec).roles.items()}
    where = world(**order)
    server = told("tony-mxnet", where, "server:1")
    assert (server["DMLC_ROLE"], server["DMLC_NUM_SERVER"], server["DMLC_NUM_WORKER"]) == ("server", "2", "2")
    assert server["DMLC_PS_ROOT_URI"] == where.members_of("scheduler")[0].host
    assert server["DMLC_LOCAL"] == "0"
    assert told("tony-mxnet", where, "worker:0")["JOB_NAME"] == "worker"


class TestHorovod:
    def test_slots_go_host_by_host(self) -> None:
        hosts = ["a", "b", "a"]
        workers = tuple(Member(TaskId("worker", n), host, {"main": n}) for n, host in enumerate(hosts))
        where = World(1, (*workers, Member(TaskId("driver", 0), "d", {"main": 99})), "j")
        names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
        slots = []
        for index in range(3):
            variables = told("tony-horovod", where, f"worker:{index}")
            slots.append(tuple(int(variables[f"HOROVOD_{name}"]) for name in names))
        assert slots == [(0, 3, 0, 2, 0, 2), (2, 3, 0, 1, 1, 2), (1, 3, 1, 2, 0, 1)]
        assert variables["HOROVOD_GLOO_RENDEZVOUS_ADDR"] == "d"
        assert variables["HOROVOD_GLOO_RENDEZVOUS_PORT"] == "99"
        assert (variables["HOROVOD_CONTROLLER"], variables["CLUSTER_SPEC"]) == ("gloo", "a:2,b:1")
        driver = told("tony-horovod", where, "driver:0")
        assert ("HOROVOD_RANK" in driver, driver["CLUSTER_WORKER_LIST"]) == (False, "a:2,b:1")

    def test_the_rendezvous_keeps_what_it_is_given(self) -> None:
        port = free_port()
        command = [sys.executable, "-c", RENDEZVOUS]
        environment = {**os.environ, "HOWDAH_PORT": str(port)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                connection = retried(port)
                connection.request("GET", "/global/0")
                assert answer(connection) == (404, b"")
                connection.request("PUT", "/global/0", b"\0address")
                assert answer(connection) == (200, b"")
                connection.request("GET", "/global/0")
                assert answer(connection) == (200, b"\0address")
                connection.request("DELETE", "/global/0")
                assert answer(connection) == (200, b"")
                connection.close()
            finally:
                server.kill()

    def test_a_driver_of_the_users_is_reached_through_the_port_that_all_know(self, tmp_path: Path) -> None:
        own, known = free_port(), free_port()
        place = f"""os.environ["DRIVER_OUTPUT_PATH"] + "/{own}____HOROVOD_RENDEZVOUS_SERVER____\""""
        listening, serving = RENDEZVOUS.split("server.serve_forever()")
        (tmp_path / "driver.py").write_text(f"{listening}open({place}, 'w').close()\nserver.serve_forever(){serving}")
        (tmp_path / "horovod_driver").mkdir()
        (tmp_path / "horovod_driver" / "1____HOROVOD_RENDEZVOUS_SERVER____").touch()  # of the driver before this one
        line = f"HOWDAH_PORT={own} {sys.executable} driver.py & read; kill $!; exit 7"
        command = [sys.executable, "-c", RELAY, line]
        environment = {**os.environ, "HOWDAH_PORT": str(known)}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, cwd=tmp_path) as relay:
            try:
                connection = retried(known)
                connection.request("PUT", "/global/0", b"\0address")
                assert answer(connection) == (200, b"")
                connection.request("GET", "/global/0")
                assert answer(connection) == (200, b"\0address")
                connection.close()
                relay.communicate(b"\n", timeout=60)
                assert relay.returncode == 7
            finally:
                relay.kill()


def retried(port: int) -> http.client.HTTPConnection:
    """It listens a moment after it has said so."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    deadline = time.monotonic() + 60
    while True:
        try:
            connection.connect()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, f"nothing listens on port {port}"
            time.sleep(0.01)
        else:
            return connection


def answer(connection: http.client.HTTPConnection) -> tuple[int, bytes]:
    response = connection.getresponse()
    return response.status, response.read()
