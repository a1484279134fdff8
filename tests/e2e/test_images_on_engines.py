"""Tests that jobs with a container image run in it on this machine, on a real Slurm and on hosts that ssh reaches: by
the real podman, from `howdah run` to the last process that must be gone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from image_tools import RELEASE, Tool, needs_podman, podman_for_path, root_archive
from ssh_hosts import SSHD, SshHosts
from submitted_job import LIMIT_S, until

pytestmark = needs_podman()
HOWDAH = str(Path(sys.executable).with_name("howdah"))


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for a podman, its containers and images, and the archive of an image."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def podman(tools: Path) -> Iterator[Tool]:
    with podman_for_path(tools) as found:
        yield found


@pytest.fixture(scope="module")
def ssh(tools: Path, podman: Tool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("needs openssh-server and openssh-client")
    hosts = SshHosts(tmp_path_factory.mktemp("ssh"))
    for host in hosts.hosts:
        shutil.copy(tools / podman.name, host.bin)
    yield hosts
    hosts.stop()


class Jobs:
    """Submits jobs to one engine, from a directory of the test's own."""

    def __init__(self, engine: str, directory: Path, tools: Path, podman: Tool, variables: dict[str, str]) -> None:
        self.engine, self.directory, self.podman = engine, directory, podman
        self.tools, self.archive = tools, root_archive(tools)
        self.shared = directory / "shared"
        self.shared.mkdir()
        kept = {name: value for name, value in os.environ.items() if name != "HADOOP_CONF_DIR"}
        own = {**podman.environment, "HOWDAH_PYTHON": os.path.realpath(sys.executable)}
        self.environment = {**kept, **own, "HOWDAH_HOME": str(directory / "home"), **variables}
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, command: str, memory: str = "256MiB", **job: Any) -> subprocess.Popen[bytes]:
        """Start `howdah run` with a job whose image is the archive, and whose directory `shared` the program sees."""
        environment = {"image": f"./{self.archive.name}", "mounts": [f"{self.shared}:/shared"]}
        worker = {"command": command, "resources": {"memory": memory}}
        job = {"files": [str(self.archive)], "environment": environment, **job}
        path = self.directory / "job.yaml"
        path.write_text(json.dumps({"roles": {"worker": worker}, "timeouts": {"stop": "5s"}, **job}))
        words = (HOWDAH, "run", "--on", self.engine, str(path))
        with (self.directory / "out").open("wb") as out:
            self.started.append(subprocess.Popen(words, stdout=out, stderr=out, env=self.environment))
        return self.started[-1]

    def run(self, command: str, **job: Any) -> tuple[int, str]:
        """Run a job; return its exit status and all that was printed."""
        return self.start(command, **job).wait(LIMIT_S), self.text

    @property
    def text(self) -> str:
        return (self.directory / "out").read_text(errors="replace")

    @property
    def id(self) -> str:
        return str(until(lambda: re.search(rf"\b{self.engine}-[\w-]+", self.text), "the job's id")[0])

    def howdah(self, *words: str) -> str:
        done = subprocess.run((HOWDAH, *words), env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def says(self, name: str) -> str:
        """Return what a program has written to a file of `shared`."""
        path = self.shared / name
        return str(until(lambda: path.exists() and path.read_text(), f"{name}; printed: {self.text[-2000:]}"))

    def check_nothing_is_left(self) -> None:
        until(lambda: not self.podman.containers(), "the removal of all containers")
        assert str(self.tools) not in Path("/proc/self/mounts").read_text()
        until(lambda: not processes_of(self.id), f"the end of all processes of {self.id}")

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                self.howdah("cancel", self.id)
                process.wait(LIMIT_S)


def processes_of(job_id: str) -> list[int]:
    """Return the processes of a job's containers: those with the container's name, which begins with the job's id."""
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if f"HOWDAH_CONTAINER={job_id}".encode() in read(pid, "environ")]


def executor_of(job_id: str) -> int:
    """Return the executor of a job's only task, not the processes that wait for the executor's end."""
    (found,) = [
        pid
        for pid in processes_of(job_id)
        if b"howdah.executor" in (line := read(pid, "cmdline"))
        and b"python" in line.partition(b"\0")[0]  # not Slurm's command, which has the executor's beside it
        and read(pid, f"task/{pid}/children")
    ]
    return found


def read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


@pytest.fixture(params=["local", "slurm", "ssh"])
def jobs(request: pytest.FixtureRequest, tools: Path, podman: Tool, tmp_path: Path) -> Iterator[Jobs]:
    variables: dict[str, str] = {}
    if request.param == "slurm":
        request.getfixturevalue("slurm")
        variables = {"SLURM_CONF": os.environ["SLURM_CONF"]}
    elif request.param == "ssh":
        variables = request.getfixturevalue("ssh").settings()
    found = Jobs(request.param, tmp_path, tools, podman, variables)
    yield found
    found.close()


def test_a_program_runs_in_the_image_and_its_output_is_outside(jobs: Jobs) -> None:
    jobs.environment["WORD_OF_TEST"] = "s3cret"
    line = "cat /etc/os-release; echo $TOKEN; cat words/words; mkdir out; echo made > out/file; touch /shared/file"
    output, words = jobs.directory / "result", jobs.directory / "words"
    words.write_text("from the input\n")
    code, text = jobs.run(
        line,
        inputs=[{"path": str(words), "to": "words"}],
        outputs=[{"path": str(output), "from": "out", "tasks": "worker:0"}],
        secrets={"TOKEN": "env:WORD_OF_TEST"},
    )
    assert code == 0, text
    printed = jobs.howdah("logs", jobs.id)
    assert f"{RELEASE}s3cret\nfrom the input\n" in printed
    for file in (output / "file", jobs.shared / "file"):
        assert file.stat().st_uid == os.getuid()
    jobs.check_nothing_is_left()


def test_exit_codes_are_the_programs(jobs: Jobs) -> None:
    code, text = jobs.run("exit 7")
    assert code == 1, text
    assert "exit code 7" in text
    jobs.check_nothing_is_left()


def test_too_much_memory_is_named(jobs: Jobs) -> None:
    code, text = jobs.run("head -c 300000000 /dev/zero | sed s/a/b/", memory="128MiB")
    assert code == 1, text
    assert "killed by the kernel: used 128 MiB of 128 MiB" in text
    jobs.check_nothing_is_left()


def test_a_cancelled_program_gets_term_in_its_container(jobs: Jobs) -> None:
    running = jobs.start(
        "trap 'echo termed > /shared/termed; exit' TERM; echo 1 > /shared/ready; while :; do sleep 0.1; done"
    )
    jobs.says("ready")
    line = "cat /etc/os-release; echo $HOWDAH_TASK; pwd"
    printed = jobs.howdah("exec", jobs.id, "--", "sh", "-c", line)
    assert printed.startswith(f"{RELEASE}worker:0\n/"), "a user's command runs in the image, too"
    jobs.howdah("cancel", jobs.id)
    assert running.wait(LIMIT_S) == 2, jobs.text
    assert (jobs.shared / "termed").exists()
    jobs.check_nothing_is_left()


def test_a_killed_executor_leaves_no_container_and_is_replaced(jobs: Jobs) -> None:
    line = "if [ -e /shared/first ]; then exit 0; fi; sleep 1000 & echo $! > /shared/first; wait"
    running = jobs.start(line, retries=1)
    jobs.says("first")
    (name,) = jobs.podman.containers()
    os.kill(executor_of(jobs.id), signal.SIGKILL)
    assert running.wait(LIMIT_S) == 0, jobs.text
    assert name not in jobs.podman.containers()
    jobs.check_nothing_is_left()
