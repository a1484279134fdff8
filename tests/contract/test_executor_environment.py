"""Tests which `python` a program gets, and whether it runs in the requested image, with real executors."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conductor import SOURCE, Conductor

from howdah.engines.yarn import images
from howdah.wire.messages import Assignment, ImageOrder

Start = Callable[..., Conductor]
PREFIX = "import sys; print(sys.prefix)"
NODEMANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
DOCKER = {"YARN_CONTAINER_RUNTIME_TYPE": "docker", "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "tf:1"}
CHECK = images.nodemanager_check(DOCKER, "127.0.0.1")


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Start]:
    started: list[Conductor] = []

    def start(command: object, **fields: object) -> Conductor:
        started.append(Conductor(tmp_path, Assignment(command, **fields)))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The PATH of a node that has a shell and `python3`, and no `python`."""
    directory = tmp_path / "bare"
    directory.mkdir()
    for name in ("bash", "sh", "env", "cat"):
        (directory / name).symlink_to(str(shutil.which(name)))
    (directory / "python3").symlink_to(os.path.realpath(sys.executable))
    return {"PATH": str(directory)}


class TestPython:
    @pytest.mark.parametrize("command", [f"python -c '{PREFIX}'", ("python", "-c", PREFIX)])
    def test_it_is_the_executors_where_the_node_has_none(
        self, command: object, conduct: Start, bare: dict[str, str]
    ) -> None:
        master = conduct(command)
        master.start(bare)
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok, ended.exit
        assert master.output() == f"{sys.prefix}\n".encode()  # the virtual environment, not what it was made from
        version = sysconfig.get_python_version()
        told = f"[howdah: PATH has no 'python': here it means {sys.executable} (Python {version}."
        assert master.output("stderr").decode().startswith(told)

    def test_scripts_find_the_environment_and_get_no_unasked_output(self, conduct: Start, bare: dict[str, str]) -> None:
        master = conduct("bash train.sh; env ./train.py; python3 -c 'print(3)'")
        (master.work / "train.sh").write_text("python -c 'print(1)'\n")
        (master.work / "train.py").write_text("#!/usr/bin/env python\nprint(2)\n")
        (master.work / "train.py").chmod(0o755)
        master.start(bare)
        master.run()
        assert (master.output(), master.output("stderr")) == (b"1\n2\n3\n", b"")

    def test_one_that_is_there_is_left_alone(self, conduct: Start, bare: dict[str, str]) -> None:
        own = Path(bare["PATH"], "python")
        own.write_text("#!/bin/sh\necho mine $*\n")
        own.chmod(0o755)
        master = conduct("python x; echo $PATH")
        master.start(bare)
        master.run()
        assert master.output().decode() == f"mine x\n{bare['PATH']}\n"

    def test_an_environment_that_was_asked_for_is_not_mixed_with_another(
        self, conduct: Start, bare: dict[str, str]
    ) -> None:
        master = conduct("python x.py", program_path=("env/bin",))
        (master.work / "env" / "bin").mkdir(parents=True)
        master.start(bare)
        ended = master.run()
        assert str(ended.exit).startswith("exit code 127: 'python' is not found on PATH: name an environment that has")

    def test_what_is_missing_all_the_same_is_told(self, conduct: Start, bare: dict[str, str]) -> None:
        master = conduct("python train.py")
        master.start(bare)
        ended = master.run()
        assert str(ended.exit) == "exit code 2: 'train.py' is not in the working directory: add it to `files`"


class TestImage:
    def test_one_that_the_nodemanager_does_not_use_fails_the_task_before_its_program_starts(
        self, conduct: Start, tmp_path: Path
    ) -> None:
        master = conduct("touch ran", image=ImageOrder("tf:1", check=CHECK))
        directories = {"LOCAL_DIRS": f"{tmp_path}/a,{tmp_path}/b", "LOG_DIRS": str(tmp_path)}
        master.start({**DOCKER, **directories}, before=(sys.executable, "-c", STARTED_BY, NODEMANAGER))
        ended = master.until(lambda status: status.exit)
        assert ended.exit is not None
        assert (ended.exit.cause, str(ended.exit).partition(":1' is not used: ")[0]) == ("image", "image 'tf")
        assert "the NodeManager of 127.0.0.1 started the task outside of a container" in str(ended.exit)
        assert "docker in yarn.nodemanager.runtime.linux.allowed-runtimes" in str(ended.exit)
        assert not (master.work / "ran").exists()

    def test_who_asked_for_none_runs_on_the_node(self, conduct: Start) -> None:
        master = conduct("true")
        master.start(before=(sys.executable, "-c", STARTED_BY, NODEMANAGER))
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok


# A process whose command line is that of a NodeManager, and which starts the executor.
STARTED_BY = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[2:]).returncode)"

LOOK = (
    "import os; from howdah.executor.image_check import in_container; "
    "from howdah.engines.yarn.images import nodemanager_check; "
    'print(in_container(nodemanager_check({"YARN_CONTAINER_RUNTIME_TYPE": "docker"}, "n1"), os.environ, os.curdir))'
)


def looked(before: str, **variables: str) -> str:
    """What an executor finds, in namespaces of its own after `before` was done there."""
    inside = f"{before} && exec {sys.executable} -c {shlex.quote(LOOK)}"
    unshare = ["unshare", "--map-root-user", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "sh", "-c", inside]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **variables}
    here = Path(__file__).parent
    done = subprocess.run(unshare, cwd=here, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def may_unshare() -> bool:
    tried = ["unshare", "--map-root-user", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    return shutil.which("unshare") is not None and subprocess.run(tried, check=False, timeout=120).returncode == 0


@pytest.mark.skipif(not may_unshare(), reason="no namespaces for this user on this machine")
class TestContainer:
    @pytest.mark.parametrize("variable", ["LOCAL_DIRS", "LOG_DIRS"])
    def test_directories_of_yarns_are_mounted_in_one(self, variable: str, tmp_path: Path) -> None:
        directory = tmp_path / "a b" / "appcache" / "application_1_1"
        directory.mkdir(parents=True)
        listed = f"{tmp_path},{directory}"
        assert looked(f"mount --bind '{directory}' '{directory}'", **{variable: listed}) == "True\n"

    def test_the_use_of_an_image_is_unknown_without_mounts_and_nodemanager(self, tmp_path: Path) -> None:
        assert looked(f"mount --bind {tmp_path} {tmp_path}", LOCAL_DIRS=f"{tmp_path}/appcache") == "None\n"

    def test_a_link_to_where_it_is_mounted(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        assert looked(f"mount --bind {tmp_path}/real {tmp_path}/real", LOCAL_DIRS=f"{tmp_path}/link") == "True\n"
