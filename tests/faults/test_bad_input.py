"""Tests mistakes found before a job starts: the command line names the place, the value and the remedy.

Nothing of a refused job is left: no directory, no process, no entry in the ledger.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
from local_jobs import HOWDAH, LIMIT_S, RunningCommand, eventually, run_command

from howdah.supervisor.state import MachineState

SPEC, STAGING, UNAVAILABLE, REJECTED = 64, 66, 69, 77
TONY_REFUSED = 255
"""What TonY's client ends with when it refuses what it was given."""


@dataclass(frozen=True)
class User:
    """Somebody with a home and a directory of their own, and no cluster."""

    home: Path
    directory: Path

    def environment(self, **more: str) -> dict[str, str]:
        dropped = ("HADOOP_CONF_DIR", "HOWDAH_", "XDG_", "CUDA_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return {**kept, "HOWDAH_HOME": str(self.home), **more}

    def howdah(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_command([HOWDAH, *arguments], env=self.environment(**environment), cwd=self.directory)

    def job(self, **job: Any) -> str:
        """The name of a job file that is all right, but for `job`."""
        role = {"command": "true", "resources": {"memory": "64MiB"}, **job.pop("role", {})}
        (self.directory / "job.yaml").write_text(json.dumps({"roles": {"worker": role}, **job}))
        return "job.yaml"

    def configuration(self, **properties: str) -> str:
        """A Hadoop configuration directory; `_` in the names stands for a dot."""
        directory = self.directory / "conf"
        directory.mkdir()
        rows = (
            f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
            for name, value in properties.items()
        )
        (directory / "core-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
        return str(directory)

    def refused(self, code: int, *words: str, **how: Any) -> str:
        """What `howdah run` of a job says that is refused like this."""
        options, variables = how.pop("options", ()), how.pop("variables", {})
        return self.fails(code, *words, arguments=("run", *options, self.job(**how)), variables=variables)

    def fails(self, code: int, *words: str, arguments: tuple[str, ...], variables: dict[str, str] | None = None) -> str:
        done = self.howdah(*arguments, **variables or {})
        assert (done.returncode, done.stdout) == (code, ""), done
        assert "Traceback" not in done.stderr
        for word in words:
            assert word in done.stderr
        assert self.left() == []
        return done.stderr

    def left(self) -> list[str]:
        """Whatever there is of jobs."""
        jobs = [str(path) for path in (self.home / "state" / "jobs").glob("*")]
        state = MachineState.for_home(str(self.home / "state"))
        return [*jobs, *state.entries(), *(job.job_id for job in state.waiting())]


@pytest.fixture
def user(tmp_path: Path, howdah_home: Path) -> User:
    (tmp_path / "work").mkdir()
    return User(howdah_home, tmp_path / "work")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that nobody listens at, and that nobody else can take."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


@pytest.fixture
def answer() -> Iterator[Callable[[bytes], int]]:
    """Starts a server that answers everybody with the same bytes, and gives its port."""
    servers: list[tuple[socket.socket, threading.Thread]] = []

    def start(data: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=serve, args=(server, data), daemon=True)
        servers.append((server, thread))
        thread.start()
        return int(server.getsockname()[1])

    yield start
    for server, thread in servers:
        server.shutdown(socket.SHUT_RDWR)
        thread.join(LIMIT_S)
        server.close()
        assert not thread.is_alive(), "the server's thread has not ended"


def serve(server: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        while True:
            with server.accept()[0] as peer:
                peer.recv(1 << 16)
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(1 << 16):  # what is closed with bytes unread is reset, and the answer with it
                    pass


class TestJobFile:
    @pytest.mark.parametrize(
        ("content", "code", "words"),
        [
            (b"roles: [1", SPEC, ["job.yaml:", "is not YAML", "expected ',' or ']'"]),
            (b"\xff\xfe\x00", SPEC, ["job.yaml: is not UTF-8: byte 0 is 0xff"]),
            (b"", SPEC, ["roles: is missing (job.yaml:1)"]),
            (
                b"roles:\n  worker:\n    comand: true\n",
                SPEC,
                [
                    "roles.worker.comand: is not a key here",
                    "did you mean 'command'?",
                    "job.yaml:3",
                    "command: is empty",
                ],
            ),
            (
                b"roles: {worker: {command: x, replicas: 0, resources: {memory: 2 GB}}}\nframework: tensorfow\n",
                SPEC,
                [
                    "replicas: is 0, must be at least 1",
                    "'2 GB', must be memory, like 2GiB",
                    "did you mean 'tensorflow'?",
                ],
            ),
        ],
    )
    def test_every_mistake_has_its_place(self, user: User, content: bytes, code: int, words: list[str]) -> None:
        (user.directory / "job.yaml").write_bytes(content)
        user.fails(code, *words, arguments=("run", "job.yaml"))

    def test_no_such_file(self, user: User) -> None:
        user.fails(STAGING, "nosuch.yaml: No such file", "Give the path of a job", arguments=("run", "nosuch.yaml"))
        user.fails(STAGING, "Is a directory", arguments=("run", "."))

    def test_what_is_named_must_be_there(self, user: User) -> None:
        (user.directory / "train.py").write_text("")
        (user.directory / "model").mkdir()
        said = user.refused(
            STAGING,
            f"files.0: 'tain.py': no such file: {user.directory}/tain.py (did you mean 'train.py'?) (job.yaml:1)",
            f"inputs.0.path: 'data/*.csv': no such file or directory: {user.directory}/data/*.csv",
            f"outputs.0.path: {user.directory}/model exists already: remove it, choose another, or allow it with",
            files=["tain.py"],
            inputs=[{"path": "data/*.csv", "to": "data"}],
            outputs=[{"path": "model", "from": "out"}],
        )
        assert len(said.splitlines()) == 3

    def test_what_cannot_be_written_has_its_place(self, user: User) -> None:
        nowhere = "/proc/model"
        user.refused(STAGING, "outputs.0.path: /proc/", "(job.yaml:1)", outputs=[{"path": nowhere, "from": "out"}])
        user.refused(STAGING, f"checkpoint.path: {nowhere}", "(job.yaml:1)", checkpoint={"path": nowhere})

    def test_environments_must_be_there(self, user: User) -> None:
        user.refused(STAGING, "nosuch.txt': No such file", environment={"requirements": "nosuch.txt"})
        user.refused(STAGING, "nosuch.tar.gz': no such file", environment={"archive": "nosuch.tar.gz"})
        words = "environment.python: '/opt/nosuch/python3': no such interpreter"
        user.refused(SPEC, words, environment={"python": "/opt/nosuch/python3"})
        words = "environment.python: is 'python3.11', must be a path such as /opt/env/bin/python"
        user.refused(SPEC, words, environment={"python": "python3.11"})

    def test_names_that_clash(self, user: User) -> None:
        said = user.refused(
            SPEC,
            "files.0: would be 'data' in the working directory, as ",
            "rename it with #name",
            files=["a.csv#data"],
            archives=["b.zip#data"],
            inputs=[{"path": "c", "to": "data"}],
        )
        assert "archives.0: would be 'data'" in said

    def test_outputs_that_can_not_be_written(self, user: User) -> None:
        (user.directory / "taken").write_text("a file")
        user.refused(STAGING, f"{user.directory}/taken", outputs=[{"path": "taken/model"}])

    def test_secrets_must_be_there(self, user: User) -> None:
        secrets = {"TOKEN": "env:NOSUCHVARIABLE", "KEY": "file:/nonexistent/key"}
        words = [
            "secrets.TOKEN: the variable NOSUCHVARIABLE is not set here",
            "secrets.KEY: /nonexistent/key can't be read",
        ]
        user.refused(SPEC, *words, secrets=secrets)


class TestSpecialFiles:
    """Devices, pipes, what the kernel shows as files, and names that no file can have."""

    def test_files_archives_and_inputs(self, user: User) -> None:
        os.mkfifo(user.directory / "pipe")
        long = "a" * 5000
        said = user.refused(
            STAGING,
            "files.0: /dev/zero is a device",
            f"files.1: {user.directory}/pipe is a pipe",
            "files.2: /proc is the kernel's",
            "files.3: /proc/self/environ is the kernel's",
            "files.4: ",
            "archives.0: /dev/null is a device",
            "inputs.0.path: /dev/zero is a device",
            "inputs.1.path: ",
            files=["/dev/zero", "pipe", "/proc", "/proc/self/environ", long],
            archives=["/dev/null"],
            inputs=[{"path": "/dev/zero"}, {"path": long}],
        )
        assert said.count("file name too long") == 2

    @pytest.mark.parametrize(
        ("path", "words"),
        [("/dev/zero", "it is a device"), ("a" * 5000, "File name too long"), (".", "Is a directory")],
    )
    def test_environments(self, user: User, path: str, words: str) -> None:
        user.refused(STAGING, "environment.requirements: ", words, environment={"requirements": path})

    def test_a_packed_environment(self, user: User) -> None:
        user.refused(STAGING, "environment.archive: /dev/zero is a device", environment={"archive": "/dev/zero"})

    def test_secrets(self, user: User) -> None:
        user.refused(SPEC, "secrets.KEY: /dev/zero can't be read: it is a device", secrets={"KEY": "file:/dev/zero"})
        (user.directory / "long").write_text("x" * 140_000)
        user.refused(SPEC, "it is longer than 131071 bytes", secrets={"KEY": f"file:{user.directory}/long"})

    def test_what_no_path_can_be(self, user: User) -> None:
        words = ("files.0: contains a NUL byte", "inputs.0.path: contains", "outputs.0.path: contains")
        user.refused(SPEC, *words, files=["a\0"], inputs=[{"path": "b\0"}], outputs=[{"path": "c\0"}])

    def test_arguments_that_name_no_usable_file_or_job_are_refused_in_one_line(self, user: User) -> None:
        long = "a" * 5000
        user.fails(STAGING, "File name too long", arguments=("run", long))
        user.fails(STAGING, "no job has the name 'aaa", arguments=("status", long))
        user.fails(STAGING, "file name too long", arguments=("data", "put", long, "b"))
        user.fails(STAGING, "/dev/zero is a device", arguments=("data", "put", "/dev/zero", "b"))
        user.fails(STAGING, "/dev/zero: it is a device", arguments=("run", "/dev/zero"))

    def test_a_command_that_linux_would_not_start(self, user: User) -> None:
        user.refused(SPEC, "roles.worker.command: is 140000 bytes long", "131071", role={"command": "x" * 140_000})
        user.refused(SPEC, "env.A: is 140002 bytes long, and Linux takes at most 131071", env={"A": "x" * 140_000})

    def test_a_pipe_may_bring_the_job_and_a_secret(self, user: User) -> None:
        job = user.job(secrets={"KEY": f"file:{user.directory}/key"}, role={"command": 'test "$KEY" = 5'})
        pipe, key = user.directory / "pipe", user.directory / "key"
        os.mkfifo(pipe)
        os.mkfifo(key)
        running = RunningCommand([HOWDAH, "run", str(pipe)], user.environment(), user.directory / "out")
        for path, data in ((pipe, (user.directory / job).read_bytes()), (key, b"5\n")):
            writer = eventually(partial(opened_by_reader, path), f"a reader of {path}", output=lambda: running.text)
            with writer as file:
                file.write(data)
        assert running.done() == 0, running.text


def opened_by_reader(pipe: Path) -> IO[bytes] | None:
    """The pipe, open for writing, once somebody reads it."""
    with suppress(OSError):
        return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb")
    return None


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (
                ("--on", "yran"),
                "engine: is 'yran', known are kubernetes, local, slurm, spark, ssh, yarn (did",
            ),
            (("--set", "nonsense"), "--set: is 'nonsense', must be NAME=VALUE"),
            (("--set", "roles.worker.replcas=2"), "roles.worker.replcas: is not a key here"),
            (("--set", "roles.worker.replicas=many"), "roles.worker.replicas: is 'many', must be"),
            (("--profile", "nosuch"), "profile: is 'nosuch', no profiles are in "),
            (("--nosuch",), "No such option '--nosuch'"),
        ],
    )
    def test_wrong_ones(self, user: User, options: tuple[str, ...], words: str) -> None:
        user.refused(SPEC, words, options=options)

    def test_a_wrong_setting_names_its_file(self, user: User) -> None:
        user.home.mkdir()
        (user.home / "config.yaml").write_text("queue: prod\nenigne: yarn\n")
        words = ["enigne: is not a setting", "(did you mean 'engine'?)", f"({user.home}/config.yaml:2)"]
        user.fails(SPEC, *words, arguments=("list",))

    def test_commands_that_are_not_there(self, user: User) -> None:
        user.fails(SPEC, "No command 'runn'. Did you mean run?", arguments=("runn", "job.yaml"))

    def test_jobs_that_are_not_there(self, user: User) -> None:
        for command in ("status", "logs", "cancel"):
            words = "no job local-20260101-000000-abcd on engine local; `howdah list` shows yours"
            user.fails(STAGING, words, arguments=(command, "local-20260101-000000-abcd"))


class TestThisMachine:
    def test_a_job_that_never_fits(self, user: User) -> None:
        role = {"replicas": 2, "resources": {"memory": "9000GiB", "gpus": 3}}
        words = [
            "can never run here: needs 2 × 9000 GiB (worker) = 18000 GiB",
            "2 × 3 GPUs (worker) = 6 GPUs",
            "has 4 GPUs",
        ]
        user.refused(REJECTED, *words, role=role, variables={"HOWDAH_LOCAL_GPUS": "4"})

    def test_a_home_that_can_not_be(self, user: User) -> None:
        path = user.job()
        done = user.howdah("run", path, HOWDAH_HOME="/proc/nosuch")
        assert (done.returncode, done.stdout) == (STAGING, "")
        assert "/proc/nosuch" in done.stderr


class TestCluster:
    def test_no_configuration(self, user: User) -> None:
        advice = "point it at the cluster's configuration directory, or start a cluster with `howdah sandbox up`"
        on = ("--on", "yarn")
        user.refused(SPEC, f"HADOOP_CONF_DIR: is not set: {advice}", options=on)
        for wrong in ("/nonexistent", str(user.directory)):
            words = f"{wrong!r} has neither core-site.xml nor yarn-site.xml: {advice}"
            user.refused(SPEC, words, options=on, variables={"HADOOP_CONF_DIR": wrong})

    def test_a_configuration_that_is_no_xml(self, user: User) -> None:
        (user.directory / "yarn-site.xml").write_text("<configuration>\n<property>\n")
        variables = {"HADOOP_CONF_DIR": str(user.directory)}
        user.refused(
            SPEC, f"{user.directory}/yarn-site.xml:3: no element", options=("--on", "yarn"), variables=variables
        )

    def test_a_port_without_a_server_is_reported(self, user: User, silent_port: int) -> None:
        port = silent_port
        conf_dir = user.configuration(yarn_resourcemanager_address=f"127.0.0.1:{port}")
        words = f"ResourceManager 127.0.0.1:{port} (yarn.resourcemanager.address): connection refused"
        user.refused(UNAVAILABLE, words, options=("--on", "yarn"), variables={"HADOOP_CONF_DIR": conf_dir})
        for arguments in (("status", "application_1_0001"), ("list", "--on", "yarn"), ("cancel", "application_1_0001")):
            user.fails(UNAVAILABLE, words, arguments=arguments, variables={"HADOOP_CONF_DIR": conf_dir})

    def test_a_host_that_is_not_there(self, user: User) -> None:
        conf_dir = user.configuration(yarn_resourcemanager_hostname="nosuchhost.invalid")
        words = "ResourceManager nosuchhost.invalid:8032 (yarn.resourcemanager.address)"
        user.fails(UNAVAILABLE, words, arguments=("list", "--on", "yarn"), variables={"HADOOP_CONF_DIR": conf_dir})

    def test_a_wrong_port(self, user: User, answer: Callable[[bytes], int]) -> None:
        port = answer(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        conf_dir = user.configuration(yarn_resourcemanager_address=f"127.0.0.1:{port}")
        words = f"ResourceManager 127.0.0.1:{port} (yarn.resourcemanager.address)"
        said = user.fails(
            UNAVAILABLE, words, arguments=("list", "--on", "yarn"), variables={"HADOOP_CONF_DIR": conf_dir}
        )
        assert "that is not Hadoop IPC" in said

    def test_no_namenode(self, user: User, silent_port: int) -> None:
        port = silent_port
        conf_dir = user.configuration(
            fs_defaultFS=f"hdfs://127.0.0.1:{port}", yarn_resourcemanager_address="127.0.0.1:1"
        )
        words = [f"the NameNode hdfs://127.0.0.1:{port} does not answer", "(tried for ", f"is from {conf_dir}"]
        inputs = [{"path": "/data", "to": "data"}]
        variables = {"HADOOP_CONF_DIR": conf_dir}
        user.refused(UNAVAILABLE, *words, options=("--on", "yarn"), inputs=inputs, variables=variables)


@pytest.mark.parametrize(
    ("code", "why", "words"),
    [
        (STAGING, "ile name too long", ("run", "{}")),
        (STAGING, "ile name too long", ("data", "put", "{}", "out")),
        (TONY_REFUSED, "--conf_file: 'aaa", ("tony", "submit", "--conf_file={}")),
    ],
)
def test_a_name_that_is_too_long(user: User, code: int, why: str, words: tuple[str, ...]) -> None:
    said = user.fails(code, why, arguments=tuple(word.format("a" * 5000) for word in words))
    assert said.count("\n") == 1
