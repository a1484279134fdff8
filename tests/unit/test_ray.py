"""Tests the roles, commands and variables of a job on Ray, without Ray."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from howdah.config import job_file
from howdah.errors import SpecError
from howdah.frameworks import command_of, files_of, find, key_variable, ray_task
from howdah.frameworks.ray import NODE, PROGRAM
from howdah.spec import Input, JobSpec, Member, Output, Resources, Role, TaskId, World
from howdah.spec.task import chief

RAY = find("ray")
HEAD, NODES = TaskId("head", 0), TaskId("node", 1)


def test_tasks_that_begin_together_leave_each_other_their_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_task, "_TEMPORARY", str(tmp_path))
    lock, begun = fcntl.flock, 0

    def lock_after_another_began(file: Any, how: int) -> None:
        nonlocal begun
        begun += 1
        if how == fcntl.LOCK_EX and begun == 1:
            with ray_task.make_directory():
                pass
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_after_another_began)
    with ray_task.make_directory() as directory:
        assert Path(directory).is_dir()
        with ray_task.make_directory() as other:
            assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
                Path(each).name for each in (directory, other)
            )
    killed = tmp_path / "howdah-ray-killed"
    killed.mkdir()
    (killed / "lock").touch()
    with ray_task.make_directory() as directory:
        assert [str(path) for path in tmp_path.iterdir()] == [directory], "what a killed task left is removed"


def job(**roles: Role) -> JobSpec:
    return RAY.expand(JobSpec(roles, framework="ray", inputs=(Input("data"),)))


def test_roles_without_a_command_are_nodes_with_what_they_have(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "framework: ray\nroles:\n  node: {replicas: 2, resources: {gpus: 1, memory: 2GiB}}\n"
        "  head: {command: python train.py}\n  watch: {command: python watch.py, on_failure: ignore}\n"
    )
    spec = RAY.expand(job_file.load(tmp_path / "job.yaml").spec)
    assert list(spec.roles) == ["head", "node", "watch"], "the head is the chief"
    node, head = spec.roles["node"], spec.roles["head"]
    assert (node.command, node.tracked, node.on_failure) == (NODE, False, "restart")
    assert (head.tracked, head.on_failure, spec.roles["watch"].tracked) == (True, "fail", True)
    assert node.env["HOWDAH_RAY_GPUS"] == "1"
    assert node.env["HOWDAH_RAY_MIB"] == "2048"
    assert {"dashboard", "client", "agent"} <= set(head.ports)
    assert {role.env["RAY_AUTH_MODE"] for role in spec.roles.values()} == {"token"}
    assert RAY.expand(spec) == spec


def test_without_a_head_the_chief_is_it() -> None:
    spec = job(worker=Role(replicas=2), chief=Role("python train.py"))
    assert list(spec.roles) == ["chief", "worker"]
    assert spec.roles["worker"].command == NODE
    assert "dashboard" in spec.roles["chief"].ports
    assert spec.links == {"Ray dashboard": "http://{chief:0}:{chief:0:dashboard}"}


def test_a_job_may_let_everybody_in() -> None:
    spec = RAY.expand(JobSpec({"head": Role("x")}, env={"RAY_AUTH_MODE": "disabled"}))
    assert "RAY_AUTH_MODE" not in spec.roles["head"].env


def test_a_single_role_gives_its_first_task_to_the_head() -> None:
    spec = job(worker=Role("python train.py", replicas=3, resources=Resources(1024), min_replicas=3))
    assert {name: (role.replicas, role.command) for name, role in spec.roles.items()} == {
        "head": (1, "python train.py"),
        "worker": (2, NODE),
    }
    assert spec.roles["worker"].min_replicas == 2
    assert spec.inputs[0].roles == ("head",)
    assert chief(spec) == HEAD, "whose output is shown, and whose checkpoint is kept"
    kept = JobSpec({"worker": Role("x", replicas=2)}, framework="ray", outputs=(Output("m", tasks="worker:0"),))
    assert RAY.expand(kept).outputs[0].tasks == "head"
    assert list(job(worker=Role("python train.py")).roles) == ["head"]


@pytest.mark.parametrize(
    ("roles", "mistake"),
    [
        ({"head": Role("x", replicas=2)}, r"roles\.head\.replicas: is 2, must be 1"),
        ({"head": Role("x"), "node": Role(), "gang": False}, "gang: is false, but the tasks of a Ray cluster start"),
        ({"head": Role(), "node": Role()}, r"roles\.head\.command: is empty"),
    ],
)
def test_what_cannot_be_a_cluster_is_refused(roles: dict[str, Any], mistake: str) -> None:
    gang = bool(roles.pop("gang", True))
    with pytest.raises(SpecError, match=mistake):
        job_file.check_job(JobSpec(roles, name="x", framework="ray", gang=gang))


def test_ray_stays_until_all_of_a_program_that_is_stopped_has_saved(tmp_path: Path) -> None:
    saves = "touch told; until [ -e go ]; do sleep 0.02; done; [ -e over ] || touch saved; exit 0"
    (tmp_path / "train.sh").write_text(f"trap '{saves}' TERM\ntouch runs\nwhile :; do sleep 0.02; done\n")
    (tmp_path / "task.py").write_text(
        f"import pathlib, subprocess, sys\nsys.path.append({str(Path(ray_task.__file__).parent)!r})\nimport ray_task\n"
        "signals = ray_task.Signals()\n"
        "ray = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "status = ray_task.run_beside(ray, ['sh', '-c', 'sh train.sh; true'], '.', signals)\n"
        "pathlib.Path('over').touch()\n"
        "ray_task.stop_ray(ray)\n"
        "sys.exit(status)\n"
    )
    with subprocess.Popen([sys.executable, "task.py"], cwd=tmp_path, start_new_session=True) as task:
        try:
            _await(tmp_path / "runs")
            os.killpg(task.pid, signal.SIGTERM)
            _await(tmp_path / "told")
            (tmp_path / "go").touch()
            assert task.wait(60) == 128 + signal.SIGTERM, "the shell's status"
        finally:
            task.kill()
    assert (tmp_path / "saved").exists()


def _await(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} has not come"
        time.sleep(0.02)


def test_other_frameworks_need_their_commands() -> None:
    with pytest.raises(SpecError, match=r"roles\.node\.command: is empty"):
        job_file.check_job(JobSpec({"node": Role()}, name="x", framework="pytorch"))


def test_commands_and_variables() -> None:
    world = World(1, (Member(HEAD, "a", {"main": 1}, "10.0.0.1"), Member(NODES, "b", {"main": 2}, "10.0.0.2")))
    assert command_of(RAY, HEAD, "a | b") == ("python3", "-I", PROGRAM, "program", "/bin/bash", "-c", "a | b")
    assert command_of(RAY, HEAD, ("a", "b c")) == ("python3", "-I", PROGRAM, "program", "a", "b c")
    assert command_of(RAY, NODES, NODE) == ("python3", "-I", PROGRAM, "node")
    assert command_of(RAY, TaskId("evaluator", 0), "python watch.py") == "python watch.py"
    variables = RAY.environment(world, NODES)
    assert "HOWDAH_RAY_HEAD" not in variables
    assert RAY.environment(world, HEAD)["HOWDAH_RAY_HEAD"] == "1"
    assert (variables["RAY_ADDRESS"], variables["HOWDAH_RAY_IP"]) == ("10.0.0.1:1", "10.0.0.2")
    assert key_variable(RAY) == "RAY_AUTH_TOKEN"
    assert files_of(RAY, world, NODES)[PROGRAM] == Path(ray_task.__file__).read_text()


@pytest.mark.parametrize(
    ("version", "mode", "said"),
    [
        ("", "token", "there is no Ray in the job's environment: its requirements need `ray[default]`"),
        ("2.9.3", "token", "Ray 2.9.3 asks nobody for a token"),
        ("2.9.3", "disabled", ""),
        ("2.52.0rc1", "token", ""),
        ("3.0.0", "token", ""),
    ],
)
def test_a_ray_that_lets_everybody_in_is_refused(version: str, mode: str, said: str, tmp_path: Path) -> None:
    if version:
        (tmp_path / f"ray-{version}.dist-info").mkdir()
        (tmp_path / f"ray-{version}.dist-info" / "METADATA").write_text(f"Name: ray\nVersion: {version}\n")
    program = "import sys; sys.path[:0] = sys.argv[1:]; import ray_task; ray_task.check_version()"
    paths = [str(tmp_path), str(Path(ray_task.__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", program, *paths],
        env={"RAY_AUTH_MODE": mode},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, said in done.stderr) == (1 if said else 0, True)
