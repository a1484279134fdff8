"""Tests the engine `ssh` on three real sshds: the contracts, and what its jobs survive."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from detached_master import DetachedMaster
from moto.server import ThreadedMotoServer
from runtime_archives import share_runtime_archives
from ssh_hosts import SSHD, SshHosts, generate_key
from submitted_job import until

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.submit import prepare
from howdah.engines import Engine, MasterContext
from howdah.engines.ssh.allocator import SshAllocator
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.spec import JobReport, JobSpec, Resources, Role, State, TaskId, uris
from howdah.spec.event_lines import read_log
from howdah.spec.events import Allocated, Ended, Event, Noted, Waiting
from howdah.testing.allocator_contract import AllocatorContract, staged_job
from howdah.testing.engine_contract import EngineContract, variables

WAITING = """n=1; while [ -e {mark}-$HOWDAH_INDEX-$n ]; do n=$((n + 1)); done
echo $$ $CUDA_VISIBLE_DEVICES > {mark}-$HOWDAH_INDEX-$n; until [ -e {mark}-end ]; do sleep 0.1; done"""


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module", autouse=True)
def ssh(tmp_path_factory: pytest.TempPathFactory, archives: Path) -> Iterator[SshHosts]:
    """Start the hosts, which this process and its children find by the settings' variables."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("needs openssh-server and openssh-client")
    base = tmp_path_factory.mktemp("ssh")
    share_runtime_archives(base / "howdah", archives)
    with pytest.MonkeyPatch.context() as environment:
        hosts = SshHosts(base)
        try:
            environment.setenv("HOWDAH_HOME", str(base / "howdah"))
            for name, value in hosts.settings().items():
                environment.setenv(name, value)
            environment.delenv("HADOOP_CONF_DIR", raising=False)
            yield hosts
        finally:
            hosts.stop()


class TestSshEngine(EngineContract):
    name = "ssh"

    def other_user(self, base: Path) -> AbstractContextManager[None]:
        return variables(dict.fromkeys(("HOWDAH_HOME", "HOWDAH_SSH_HOME"), str(base / "other")))

    def without_masters(self, base: Path) -> AbstractContextManager[None]:
        return variables({"PATH": str(base)})  # there is no bash


class TestSshAllocator(DetachedMaster, AllocatorContract):
    implementation = SshAllocator

    @pytest.fixture
    def context(self, ssh: SshHosts, tmp_path: Path) -> MasterContext:
        self.hosts = {host.name: host for host in ssh.hosts}
        settings = settings_for({"engine": "ssh"}).values
        job_id = f"ssh-{os.urandom(4).hex()}"
        return MasterContext(job_id, staged_job(tmp_path, settings=settings), tmp_path.as_uri(), "127.0.0.1", 1)

    @contextlib.contextmanager
    def lost_node(self, node: str) -> Iterator[None]:
        self.hosts[node].lose()
        yield
        self.hosts[node].start()


@pytest.fixture
def engine(ssh: SshHosts) -> Iterator[Engine]:
    found = engine_for(settings_for({"engine": "ssh"}))
    yield found
    for report in found.describe():
        if not report.state.ended:
            found.cancel(report.id)
    for host in ssh.hosts:
        if host.disk_bytes:
            host.lose()
        if host.process is None or host.process.poll() is not None:
            host.start()


class Job:
    """A submitted job, whose programs wait for the file `<mark>-end` unless they run another line."""

    def __init__(self, engine: Engine, base: Path, replicas: int = 2, line: str = WAITING, **options: Any) -> None:
        self.engine, self.mark = engine, base / f"mark-{os.urandom(4).hex()}"
        resources = options.pop("resources", Resources(256))
        role = Role(("/bin/sh", "-c", line.format(mark=self.mark)), replicas, resources, **options.pop("role", {}))
        job = JobSpec({"worker": role}, name="survivor", **options)
        prepared = prepare(job, base, {"engine": "ssh"}, lambda _: None)
        self.id = engine.submit(prepared.plan, prepared.secrets)
        self.directory = Path(uris.path(engine.home), "jobs", self.id)

    def report(self) -> JobReport:
        return self.engine.describe(self.id)[0]

    def events(self) -> list[Event]:
        with contextlib.suppress(FileNotFoundError):
            return list(read_log((self.directory / "events.jsonl").read_text().splitlines()))
        return []

    def log(self) -> str:
        return _read(self.directory / "events.jsonl")

    def program(self, index: int, attempt: int = 1) -> tuple[int, str]:
        """Wait for a program; return its process and its GPUs."""
        path = Path(f"{self.mark}-{index}-{attempt}")
        pid, _, gpus = until(lambda: path.exists() and path.read_text(), f"{path.name} of {self.id}").partition(" ")
        return int(pid), gpus.strip()

    def nodes(self) -> dict[str, str]:
        return {event.container.id: event.container.node for event in self.events() if isinstance(event, Allocated)}

    def waits_for(self) -> list[str]:
        """Return the reasons that the master has noted last."""
        waits = [event for event in self.events() if isinstance(event, Waiting)]
        return [str(text) for text in waits[-1].reasons] if waits else []

    def ends(self) -> list[str]:
        return [event.exit.cause for event in self.events() if isinstance(event, Ended)]

    def finish(self) -> JobReport:
        Path(f"{self.mark}-end").touch()
        return self.ended()

    def ended(self) -> JobReport:
        until(lambda: self.report().state.ended, f"the end of {self.id}")
        return self.report()

    def master(self) -> int:
        return int(json.loads(until(lambda: _read(self.directory / "master.json"), "the master's address"))["pid"])


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def nothing_is_left(ssh: SshHosts, job: Job) -> None:
    until(lambda: not any(host.processes() for host in ssh.hosts), "the end of all processes on the hosts")
    until(lambda: not any(list(host.tmp.glob(f"*/{job.id}")) for host in ssh.hosts), "the removal of all files")
    assert not list(Path(os.environ["HOWDAH_HOME"]).rglob(f"{job.id}/credentials"))


def test_a_job_succeeds_and_leaves_nothing(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, 4)
    for index in range(4):
        job.program(index)
    assert set(job.nodes().values()) <= {host.name for host in ssh.hosts}
    assert job.finish().state is State.SUCCEEDED
    nothing_is_left(ssh, job)


def test_killed_connections_are_made_again(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, 3)
    for index in range(3):
        job.program(index)
    master = job.master()
    killed = [pid for pid in children(master) if Path(f"/proc/{pid}/comm").read_text() == "ssh\n"]
    assert len(killed) == 3
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert job.finish().state is State.SUCCEEDED
    assert not Path(f"{job.mark}-0-2").exists(), "the program began again"
    nothing_is_left(ssh, job)


def children(pid: int) -> list[int]:
    return [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]


def test_a_lost_host_is_replaced_and_taken_again(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, retries=1)
    job.program(0)
    job.program(1)
    first = next(iter(job.nodes().values()))
    lost = next(host for host in ssh.hosts if host.name == first)
    lost.lose()
    until(lambda: {"lost", "silent"} & set(job.ends()), "the news of the lost host")
    job.program(0, 2)
    job.program(1, 2)
    assert f"host {first} is left out" in job.log()
    lost.start()
    until(lambda: f"host {first} is back" in job.log(), "the host's return")
    assert job.finish().state is State.SUCCEEDED
    nothing_is_left(ssh, job)


def test_two_jobs_never_get_the_same_gpu(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    jobs = [Job(engine, tmp_path, 3, resources=Resources(256, gpus=1)) for _ in range(2)]
    found = []
    for job in jobs:
        programs = [job.program(index) for index in range(3)]
        by_host = {pid: host.name for host in ssh.hosts for pid in host.processes()}
        found += [(by_host[pid], gpus) for pid, gpus in programs]
    assert sorted(found) == [(host.name, str(gpu)) for host in ssh.hosts for gpu in range(2)]
    third = Job(engine, tmp_path, 1, resources=Resources(256, gpus=1))
    reasons = engine.pending_reasons(third.id, None, {"worker": 1})
    assert "127.0.0.3 has 0 GPUs" in reasons[0].facts["text"]
    taken = ", ".join(host.name for host in ssh.hosts) + " (taken by other jobs)"
    until(lambda: any(taken in text for text in third.waits_for()), "why the third waits")
    assert not Path(f"{third.mark}-0-1").exists()
    assert jobs[0].finish().state is State.SUCCEEDED
    third.program(0)
    assert third.finish().state is State.SUCCEEDED
    assert jobs[1].finish().state is State.SUCCEEDED


def test_a_task_without_gpus_sees_none(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, 1)
    assert job.program(0)[1] == ""
    assert job.finish().state is State.SUCCEEDED


def plan(base: Path, memory: int = 256, **options: Any) -> Any:
    job = JobSpec({"worker": Role(("true",), resources=Resources(memory, **options))}, name="planned")
    return prepare(job, base, {"engine": "ssh"}, lambda _: None).plan.request


def test_hosts_are_asked_what_they_have(ssh: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ssh.hosts[0].bin / "nvidia-smi"
    fake.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: a)'; echo 'GPU 1: A (UUID: b)'; echo 'GPU 2: A (UUID: c)'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", f"{ssh.hosts[0].name}/vcores=5")
    room = plan(tmp_path)["hosts"][ssh.hosts[0].name]
    fake.unlink()
    assert (room["gpus"], room["vcores"]) == (3, 5)
    assert room["memory_mib"] > 256


def test_what_is_impossible_is_refused_in_one_line(
    ssh: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(kind: type[Exception], memory: int = 256, **options: Any) -> str:
        with pytest.raises(kind) as error:
            plan(tmp_path, memory, **options)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "127.0.0.2: 2 GPUs, 4 vcores, 4GiB" in refused(EngineRejected, gpus=3)
    assert "can never run" in refused(EngineRejected, 5000)
    assert "not the same directory" in refused_with(monkeypatch, "HOME", str(tmp_path / "nosuch"), refused)
    assert "ssh.home is not set" in refused_with(monkeypatch, "HOME", "", refused)
    assert "'-oProxyCommand=x' must be" in refused_with(monkeypatch, "HOSTS", "-oProxyCommand=x", refused)
    assert "each host once" in refused_with(monkeypatch, "HOSTS", "127.0.0.2,127.0.0.2", refused)
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", "127.0.0.9:1")
    assert "Connection refused" in refused(EngineUnavailable)
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", "nosuch.invalid")
    assert "nosuch.invalid" in refused(EngineUnavailable)
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", "127.0.0.2")
    generate_key(tmp_path / "other")
    ssh.write_config(tmp_path / "other")
    try:
        assert "Permission denied" in refused(EngineUnavailable)
    finally:
        ssh.write_config(ssh.base / "user_key")


def refused_with(monkeypatch: pytest.MonkeyPatch, name: str, value: str, refused: Callable[..., str]) -> str:
    with monkeypatch.context() as environment:
        environment.setenv(f"HOWDAH_SSH_{name}", value)
        return refused(EngineRejected)


def test_a_host_that_is_away_is_left_out(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    ssh.hosts[2].lose()
    job = Job(engine, tmp_path)
    job.program(0)
    job.program(1)
    assert ssh.hosts[2].name not in job.nodes().values()
    assert f"host {ssh.hosts[2].name} is left out" in job.log()
    assert job.finish().state is State.SUCCEEDED


def test_a_host_with_another_key_is_left_out(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    ssh.hosts[2].lose()
    key = ssh.hosts[2].directory / "host_key"
    known = key.rename(key.with_name("known_key"))
    generate_key(key)
    ssh.hosts[2].start()
    try:
        job = Job(engine, tmp_path)
        job.program(0)
        job.program(1)
        assert f"host {ssh.hosts[2].name} is left out: its host key is another" in job.log()
        assert job.finish().state is State.SUCCEEDED
    finally:
        ssh.hosts[2].lose()
        known.rename(key)
        ssh.hosts[2].start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_host_whose_disk_is_full_is_left_out_until_it_has_room(engine: Engine, ssh: SshHosts, tmp_path: Path) -> None:
    for host in ssh.hosts:
        host.lose()
        host.start(disk_bytes=1 << 14)
    job = Job(engine, tmp_path, 1)
    until(lambda: "No space left on device" in job.log(), "what the hosts say")
    for host in ssh.hosts[1:]:
        host.lose()
        host.start()
    job.program(0)
    assert set(job.nodes().values()) <= {host.name for host in ssh.hosts[1:]}
    assert job.finish().state is State.SUCCEEDED
    notes = [event.text for event in job.events() if isinstance(event, Noted)]
    assert len([text for text in notes if ssh.hosts[0].name in text]) == 1, "it is told once"


def test_logs_of_a_task_are_in_the_home(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, 1, "echo printed")
    job.ended()
    assert list(engine.logs(job.id, TaskId("worker", 0), "stdout")) == [("worker:0 attempt 1 stdout", b"printed\n")]


def test_a_home_on_an_object_store(ssh: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address, port = server.get_host_and_port()
    access = {"AWS_ENDPOINT_URL": f"http://{address}:{port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s"}
    for name, value in {**access, "HOWDAH_SSH_HOME": "s3://howdah/home"}.items():
        monkeypatch.setenv(name, value)
    fsspec.filesystem("s3").makedirs("howdah", exist_ok=True)
    (tmp_path / "note.txt").write_text("from the home\n")
    try:
        for host in ssh.hosts:
            host.lose()
            host.start(access)
        found = engine_for(settings_for({"engine": "ssh"}))
        job = Job(found, tmp_path, 2, "cat note.txt", files=("note.txt",))
        report = job.ended()
        assert (report.state, report.diagnostics) == (State.SUCCEEDED, "")
        assert found.logs_complete(job.id)
        assert list(found.logs(job.id, TaskId("worker", 1), "stdout")) == [
            ("worker:1 attempt 1 stdout", b"from the home\n")
        ]
        assert found.job_key(report) is None
    finally:
        for host in ssh.hosts:
            host.lose()
            host.start()
        server.stop()
