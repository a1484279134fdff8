"""Tests what tasks of MPI, torchrun and Horovod, which start processes themselves, are given, run and print."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.frameworks import GANG_KEY, command_of, files_of, find, key_variable, mpi_task
from howdah.frameworks.mpi import HOSTS, PROGRAM
from howdah.sandbox.addresses import free_port
from howdah.spec import Input, JobSpec, Member, Resources, Role, TaskId, World
from howdah.spec.job import Timeouts
from howdah.spec.validation import find_mistakes


def world(spec: JobSpec, **replicas: int) -> World:
    """Two tasks to a host, 10.0.0.<host>, port 5000 + place."""
    tasks = [TaskId(role, index) for role in spec.roles for index in range(replicas.get(role, 1))]
    members = (Member(t, f"h{n // 2}", {"main": 5000 + n}, f"10.0.0.{n // 2}") for n, t in enumerate(tasks))
    return World(1, tuple(members), "job-1")


def expanded(framework: str, *roles: str, **fields: object) -> JobSpec:
    spec = JobSpec({name: Role("train") for name in roles}, framework=framework, **fields)  # type: ignore[arg-type]
    return find(framework).expand(spec)


def told(spec: JobSpec, where: World, task: str) -> dict[str, str]:
    return find(spec.framework).environment(where, TaskId.parse(task))


@pytest.mark.parametrize("name", ["mpi", "torchrun", "horovod", "xlearning-mpi", "xlearning-horovod"])
class TestEvery:
    def test_an_expanded_job_has_no_mistakes_and_stays_as_it_is(self, name: str) -> None:
        spec = expanded(name, "tensorboard", "worker", "chief", inputs=(Input("in"),))
        assert not find_mistakes(spec)
        assert find(name).expand(spec) == spec
        assert [role for role, it in spec.roles.items() if it.tracked] == ["chief", "worker"]

    def test_side_roles_have_no_part(self, name: str) -> None:
        spec = expanded(name, "worker", "tensorboard")
        side = told(spec, world(spec), "tensorboard:0")
        assert not any(key.startswith(("PET_", "HOROVOD_", "HOWDAH_MPI")) for key in side)
        assert command_of(find(name), TaskId("tensorboard", 0), "tensorboard --logdir x") == "tensorboard --logdir x"
        assert files_of(find(name), world(spec), TaskId("tensorboard", 0)) == {}


class TestMpi:
    def test_the_users_command_is_behind_ours(self) -> None:
        mpi, task = find("mpi"), TaskId("worker", 1)
        ours = ("python3", "-I", PROGRAM, "task")
        assert command_of(mpi, task, "a 'b c' | d") == (*ours, "/bin/bash", "-c", "a 'b c' | d")
        assert command_of(mpi, task, ("a", "b c")) == (*ours, "a", "b c")
        assert key_variable(mpi) == GANG_KEY
        assert not key_variable(find("pytorch"))
        assert command_of(find("pytorch"), task, "a") == "a"

    def test_each_task_is_a_node_and_the_first_knows_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spec = expanded("mpi", "worker", "chief", "tensorboard")
        where = world(spec, worker=2)
        assert list(files_of(find("mpi"), where, TaskId("worker", 0))) == [PROGRAM]
        hosts = files_of(find("mpi"), where, TaskId("chief", 0))[HOSTS]
        assert hosts.splitlines() == [
            "chief-0 slots=1 # 10.0.0.0 5000",
            "worker-0 slots=1 # 10.0.0.0 5001",
            "worker-1 slots=1 # 10.0.0.1 5002",
        ]
        (tmp_path / HOSTS).write_text(hosts)
        monkeypatch.chdir(tmp_path)
        assert mpi_task.hosts()["worker-1"] == ("10.0.0.1", 5002)
        assert told(spec, where, "worker:1") == {"HOWDAH_MPI_NAME": "worker-1", "HOWDAH_MPI_ADDRESS": "10.0.0.1"}

    def test_xlearnings_programs_count_from_one(self) -> None:
        spec = expanded("xlearning-mpi", "worker")
        variables = told(spec, world(spec, worker=2), "worker:1")
        assert (variables["TF_INDEX"], variables["HOWDAH_MPI_NAME"]) == ("2", "worker-1")
        assert key_variable(find("xlearning-mpi")) == GANG_KEY
        assert HOSTS in files_of(find("xlearning-mpi"), world(spec, worker=2), TaskId("worker", 0))


class TestMpiTask:
    def test_only_the_gangs_key_opens(self) -> None:
        line = mpi_task.sign_message("key", {"to": "worker-1", "kind": "run", "value": "orted a;b 'ü'"})
        assert mpi_task.verify_message("key", line)["value"] == "orted a;b 'ü'"
        for wrong in (line.replace(b"run", b"ran"), b"x", b"", b" {}\n", mpi_task.sign_message("other", {})):
            with pytest.raises(ValueError, match="not of this job"):
                mpi_task.verify_message("key", wrong)

    def test_a_daemon_of_another_place_is_started_from_here(self, tmp_path: Path) -> None:
        daemon = tmp_path / "here" / "bin" / "prted"
        daemon.parent.mkdir(parents=True)
        daemon.write_text("#!/bin/sh\n")
        daemon.chmod(0o755)
        there = "PRTE_PREFIX=/a b/c;export PRTE_PREFIX;LD_LIBRARY_PATH=/opt/m/lib;/opt/m/bin/prted --daemonize --x"
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PATH", str(daemon.parent))
            line = mpi_task.adapt_daemon_command(there)
            assert mpi_task.adapt_daemon_command('  orted -mca ess "env"') == '  orted -mca ess "env"'
            assert mpi_task.adapt_daemon_command("/gone/bin/orted -mca x y") == "/gone/bin/orted -mca x y"
        home = tmp_path / "here"
        assert line.endswith(f"LD_LIBRARY_PATH={home}/lib;{home}/bin/prted --x")

    @pytest.mark.parametrize(
        ("prints", "problem"),
        [
            ("mpirun (Open MPI) 4.1.4", ""),
            ("mpirun (Open MPI) 5.0.11rc1", ""),
            ("prterun (Open MPI) 5.0.3", ""),
            ("mpirun (Open MPI) 1.10.2", "this works with Open MPI 4 and 5"),
            ("HYDRA build details:", "'HYDRA build details:'; this works with Open MPI 4 and 5"),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.5", "this works with Open MPI 4 and 5"),
        ],
    )
    def test_other_mpis_are_refused(
        self, prints: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        mpirun = tmp_path / "mpirun"
        mpirun.write_text(f'#!/bin/sh\necho "{prints}"\necho more\n')
        mpirun.chmod(0o755)
        with contextlib.suppress(SystemExit) if problem else contextlib.nullcontext():
            mpi_task.check_version(str(mpirun))
        assert problem in capsys.readouterr().err

    def test_without_mpirun_it_says_what_to_install(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            mpi_task.check_version("")
        assert "there is no mpirun on PATH" in capsys.readouterr().err

    def test_interfaces_are_found_by_address(self) -> None:
        assert mpi_task.interface_of("127.0.0.13") == "lo"
        assert mpi_task.interface_of("192.0.2.254") == ""
        assert mpi_task.interface_of("a-name") == ""

    def test_a_stranger_cannot_start_anything(self, tmp_path: Path) -> None:
        """The real program, waiting to be told; what it is told with another key it does not do."""
        port = free_port()
        (tmp_path / PROGRAM).write_text(files_of(find("mpi"), *_alone())[PROGRAM])
        environment = {**os.environ, "HOWDAH_GANG_KEY": "k", "HOWDAH_MPI_NAME": "worker-1", "HOWDAH_PORT": str(port)}
        command = [sys.executable, "-I", PROGRAM, "task", "true"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment) as task, contextlib.ExitStack() as strangers:
            try:
                assert _say(port, "ü {}\n".encode()) == b""
                for sent in (b"", b"half a line") * 30:
                    caller = strangers.enter_context(socket.create_connection(("127.0.0.1", port), 60))
                    caller.sendall(sent)
                for key, name, word in (("other", "worker-1", b""), ("k", "worker-2", b""), ("k", "worker-1", b"ok\n")):
                    line = mpi_task.sign_message(
                        key, {"to": name, "kind": "run", "value": f"touch {key}-{name}; kill -9 $$"}
                    )
                    assert _say(port, line) == word
                assert task.wait(60) == -9
            finally:
                task.kill()
        assert [path.name for path in tmp_path.glob("*worker*")] == ["k-worker-1"]


def _alone() -> tuple[World, TaskId]:
    task = TaskId("worker", 1)
    return World(1, (Member(TaskId("worker", 0), "h", {"main": 1}), Member(task, "h", {"main": 2}))), task


def _say(port: int, line: bytes) -> bytes:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 60) as there:
                there.sendall(line)
                return there.makefile("rb").readline()
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError(f"nothing listens on port {port}")


class TestTorchRun:
    def test_a_plain_torchrun_finds_the_others(self) -> None:
        spec = expanded("torchrun", "worker")
        where = world(spec, worker=3)
        assert told(spec, where, "worker:2") == {
            "PET_NNODES": "3",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "h0:5000",
            "PET_RDZV_ID": "job-1",
            "PET_RDZV_CONF": "is_host=false,last_call_timeout=10",
            "PET_LOCAL_ADDR": "h1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        assert told(spec, where, "worker:0")["PET_RDZV_CONF"].startswith("is_host=true,")

    def test_of_an_elastic_role_some_are_enough(self) -> None:
        spec = expanded("torchrun", "chief", "worker", "evaluator")
        where = replace(world(spec, worker=4), min_tasks={"worker": 2})
        assert told(spec, where, "worker:3")["PET_NNODES"] == "3:5"
        few = replace(world(spec, worker=2), min_tasks={"worker": 2, "evaluator": 1})
        assert told(spec, few, "worker:1")["PET_NNODES"] == "3"

    def test_it_kills_no_process_before_the_time_to_stop_is_over(self) -> None:
        roles = {"worker": Role("torchrun train.py"), "other": Role("x", env={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "9"})}
        job = JobSpec(roles, framework="torchrun", timeouts=Timeouts(stop_s=299.5))
        found = find("torchrun").expand(job)
        assert [role.env.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") for role in found.roles.values()] == ["300", "9"]
        assert find("torchrun").expand(found) == found
        short = find("torchrun").expand(replace(job, timeouts=Timeouts(stop_s=10)))
        assert not short.roles["worker"].env, "it has 30 s of its own"

    def test_a_process_for_each_gpu(self) -> None:
        roles = {
            "chief": Role("x", resources=Resources(gpus=1)),
            "worker": Role("x", resources=Resources(gpus=4)),
            "other": Role("x", resources=Resources(gpus=2), env={"PET_NPROC_PER_NODE": "1"}),
        }
        found = find("torchrun").expand(JobSpec(roles, framework="torchrun")).roles
        assert [role.env.get("PET_NPROC_PER_NODE") for role in found.values()] == [None, "4", "1"]


class TestHorovod:
    def test_workers_have_slots_and_meet_at_the_rendezvous(self) -> None:
        spec = expanded("horovod", "worker")
        assert list(spec.roles) == ["worker", "rendezvous"]
        where = world(spec, worker=3)
        assert told(spec, where, "rendezvous:0") == {}
        assert told(spec, where, "worker:1") == {
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": "h1",
            "HOROVOD_GLOO_RENDEZVOUS_PORT": "5003",
            "HOROVOD_HOSTNAME": "h0",
            "HOROVOD_RANK": "1",
            "HOROVOD_SIZE": "3",
            "HOROVOD_LOCAL_RANK": "1",
            "HOROVOD_LOCAL_SIZE": "2",
            "HOROVOD_CROSS_RANK": "0",
            "HOROVOD_CROSS_SIZE": "1",
        }

    def test_alone_without_a_gang(self) -> None:
        spec = expanded("horovod", "worker", gang=False)
        assert list(spec.roles) == ["worker"]
        assert told(spec, world(spec), "worker:0") == {}

    def test_the_plan_shows_the_rendezvous(self) -> None:
        helper = expanded("horovod", "worker").roles["rendezvous"]
        assert (helper.tracked, helper.on_failure, helper.resources.memory_mib) == (False, "fail", 256)
        assert json.dumps(helper.command).count("HOWDAH_PORT") == 2
