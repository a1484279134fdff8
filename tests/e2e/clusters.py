"""The clusters on which `scenarios` runs its table: the facts about an engine that a scenario needs, and the actions on
it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from kubernetes_setup import settings as kubernetes_settings
from live_tree import find
from ssh_hosts import SSHD, SshHosts
from submitted_job import WAITING, until
from yarn_containers import wait_counted

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.recorded_events import recorded_events
from howdah.client.submit import prepare
from howdah.engines import Engine
from howdah.engines.kubernetes import manifests
from howdah.errors import StagingError
from howdah.sandbox import KubernetesSandbox, Sandbox, SlurmSandbox, SparkSandbox
from howdah.spec import Checkpoint, JobReport, JobSpec, Resources, Role, TaskId, Timeouts
from howdah.spec.events import Event, Launched

HOWDAH = str(Path(sys.executable).with_name("howdah"))
PODS = "/api/v1/namespaces/howdah/pods"


class Cluster:
    """One cluster. Its settings are those of this process inside `active()`."""

    name: ClassVar[str]
    """The engine's name."""
    lacks: ClassVar[Mapping[str, str]] = {}
    """Scenarios that are impossible on this engine, each with the reason."""
    room: ClassVar[Resources] = Resources(256, gpus=4)
    """Resources of one task, such that a node has room for one."""
    places: ClassVar[int] = 3
    """How many tasks with these resources run at the same time."""
    low_queue: ClassVar[str] = ""
    """The queue whose jobs are preempted."""

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Let this process and its children find the cluster."""
        yield

    def engine(self) -> Engine:
        return engine_for(settings_for({"engine": self.name}))

    def is_beside_master(self, job: ScenarioJob, node: str) -> bool:
        """Return whether the job's master runs on this node."""
        return False

    def wait_counted(self, job: ScenarioJob) -> None:
        """Return when the engine counts the job's containers as running; until then it may take them back."""

    def remains(self, job: ScenarioJob) -> list[str]:
        """Return the traces of an ended job, except its processes, its directory and its logs."""
        return []

    def lose(self, node: str) -> None:
        """Let a node fail with everything that runs on it."""
        raise NotImplementedError

    def restore(self, node: str) -> None:
        """Start a lost node again."""
        raise NotImplementedError

    def preempt(self, job: ScenarioJob) -> None:
        """Let something more important take room from this job, and give it back."""
        raise NotImplementedError

    def situation(self) -> str:
        """Return the engine's description of its nodes and jobs, for the message of a failing test."""
        return ""

    def start_smaller(self, base: Path) -> ScenarioJob:
        """Return an elastic job of two tasks that runs with one task, and has room for the other from now on."""
        other = ScenarioJob(self, base, role={"replicas": self.places - 1, "resources": self.room})
        for index in range(self.places - 1):
            other.wait_started(index)
        job = self.elastic(base)
        job.wait_started(0)
        assert not job.has_started(1)
        other.finish()
        return job

    def elastic(self, base: Path) -> ScenarioJob:
        """Submit a job of two tasks that goes on with one."""
        checkpoint = Checkpoint(path=(base / "checkpoints").as_uri())  # without one a role does not grow
        role = {"replicas": 2, "min_replicas": 1, "resources": self.room}
        return ScenarioJob(self, base, role=role, timeouts=Timeouts(hold_s=2.0), checkpoint=checkpoint)


class ScenarioJob:
    """A submitted job, whose programs wait for the file `<mark>-end` unless they run another line."""

    def __init__(
        self, cluster: Cluster, base: Path, line: str = "", role: Mapping[str, Any] | None = None, **job: Any
    ) -> None:
        self.mark = base / f"mark-{os.urandom(4).hex()}"
        command = ("/bin/sh", "-c", line or WAITING.format(mark=self.mark))
        spec = Role(command, **{"resources": Resources(256), **(role or {})})
        env, self.replicas = {"SCENARIO": self.mark.name}, spec.replicas
        prepared = prepare(JobSpec({"worker": spec}, env=env, **job), base, {"engine": cluster.name}, lambda _: None)
        self.engine = cluster.engine()
        self.id = self.engine.submit(prepared.plan, prepared.secrets)

    @property
    def report(self) -> JobReport:
        return self.engine.describe(self.id)[0]

    @property
    def events(self) -> list[Event]:
        with contextlib.suppress(StagingError):  # there is no log yet
            return list(recorded_events(self.report))
        return []

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def has_started(self, index: int, start: int = 1) -> bool:
        return self.mark.with_name(f"{self.mark.name}-{index}-{start}").exists()

    def wait_started(self, index: int = 0, start: int = 1) -> None:
        """Wait until a task's program was started as often as `start` says."""
        until(lambda: self.has_started(index, start) or self.report.state.ended, f"start {start} of worker:{index}")
        assert self.has_started(index, start), self.report

    def program(self, index: int = 0) -> int:
        """Return the process of a task's program."""

        def found() -> list[int]:
            given = f"SCENARIO={self.mark.name}\0".encode(), f"HOWDAH_INDEX={index}\0".encode()
            shells = [pid for pid in processes() if read(pid, "cmdline").startswith(b"/bin/sh\0-c\0")]
            return [pid for pid in shells if all(word in read(pid, "environ") for word in given)]

        what = f"the program of worker:{index} of {self.id}"
        return int(until(found, what, lambda: "\n".join(map(str, self.events)))[0])

    def executor(self, index: int = 0) -> int:
        """Return the process of a task's executor, which is the parent of its program."""
        return parent(self.program(index))

    def master(self) -> int:
        """Return the process of the job's master. The process that restarts it may have the same arguments."""
        ours = re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(self.id).encode())
        words = ((pid, read(pid, "cmdline")) for pid in processes())
        found = [
            pid for pid, line in words if b"\0howdah.master\0" in line and ours.search(line + read(pid, "environ"))
        ]
        (master,) = [pid for pid in found if parent(pid) in found] or found
        return master

    def left(self) -> list[str]:
        """Return the processes of the job that still run."""
        ours = re.compile(rb"SCENARIO=%s\0|%s(?!\d)" % (self.mark.name.encode(), re.escape(self.id).encode()))
        found = [pid for pid in processes() if ours.search(read(pid, "environ") + read(pid, "cmdline"))]
        return [f"{pid} {read(pid, 'cmdline').replace(bytes(1), b' ').decode(errors='replace')}" for pid in found]

    def node_of(self, index: int) -> str:
        """Return the node on which the last attempt of a task was launched."""

        def found() -> list[str]:  # events reach the log a moment later
            return [event.container.node for event in self.of(Launched) if event.task == TaskId("worker", index)]

        return str(until(found, f"the launch of worker:{index} of {self.id}")[-1])

    def finish(self) -> JobReport:
        """Let the programs end, and return the report of the ended job."""
        self.mark.with_name(f"{self.mark.name}-end").touch()
        return self.ended()

    def ended(self) -> JobReport:
        until(lambda: self.report.state.ended, f"the end of {self.id}")
        return self.report


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def wait_until_gone(ids: Iterable[str]) -> None:
    """Wait for the end of all processes of these jobs: masters answer for some seconds after them."""
    pattern = re.compile("|".join(map(re.escape, ids)).encode())
    until(
        lambda: not any(pattern.search(read(pid, "environ") + read(pid, "cmdline")) for pid in processes()), "all ends"
    )


def parent(pid: int) -> int:
    return int((read(pid, "stat").rpartition(b")")[2].split() or [b"", b"0"])[1])


def read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has just ended
        return b""


def ask(*command: str) -> str:
    """Run a command, and return its output."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


class LocalMachine(Cluster):
    """This machine, with room for two tasks."""

    name, room, places = "local", Resources(256, vcores=2), 2
    lacks: ClassVar[Mapping[str, str]] = {
        "a lost node": "it is the only one",
        "preempted": "jobs wait in the order of submission",
        "elastic growth": "a gang begins when there is room for all of it",
    }

    def __init__(self, request: pytest.FixtureRequest, base: Path) -> None:
        self.base = base

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HOWDAH_HOME", str(self.base / "howdah"))
            environment.setenv("HOWDAH_LOCAL_VCORES", "4")
            yield


class YarnCluster(Cluster):
    """The sandbox of Hadoop: three nodes of four GPUs."""

    name, low_queue = "yarn", "default"

    def __init__(self, request: pytest.FixtureRequest, base: Path) -> None:
        self.sandbox: Sandbox = request.getfixturevalue("sandbox")
        self.base = base

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("HADOOP_CONF_DIR", raising=False)
            yield

    def is_beside_master(self, job: ScenarioJob, node: str) -> bool:
        return f"//{node}:" in job.report.master

    def wait_counted(self, job: ScenarioJob) -> None:
        # What is being written to HDFS is read a moment later, and part by part.
        until(lambda: len(job.of(Launched)) >= job.replicas, f"{job.replicas} launches in the event log of {job.id}")
        wait_counted(self.sandbox, [each.container.id for each in job.of(Launched)])

    def lose(self, node: str) -> None:
        self.sandbox.stop(_manager(node), 9)

    def restore(self, node: str) -> None:
        self.sandbox.start(_manager(node))
        self.sandbox.wait_nodes(3)

    def preempt(self, job: ScenarioJob) -> None:
        entitled = ScenarioJob(self, self.base, "true", {"resources": self.room}, queue="prod")
        entitled.ended()


def _manager(node: str) -> str:
    return f"nm{int(node.rpartition('.')[2]) - 10}"


class SlurmCluster(Cluster):
    """The sandbox of Slurm: three nodes of eight CPUs."""

    name, room, low_queue = "slurm", Resources(256, vcores=5), "preemptable"

    def __init__(self, request: pytest.FixtureRequest, base: Path) -> None:
        self.sandbox: SlurmSandbox = request.getfixturevalue("slurm")
        self.base = base

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HOWDAH_HOME", str(self.base))
            environment.setenv("HOWDAH_PYTHON", os.path.realpath(sys.executable))
            environment.delenv("HADOOP_CONF_DIR", raising=False)
            yield

    def is_beside_master(self, job: ScenarioJob, node: str) -> bool:
        return ask("squeue", "-hj", job.id.removeprefix("slurm-"), "-o", "%B").strip() == node

    def lose(self, node: str) -> None:
        self.sandbox.lose_node(node)

    def restore(self, node: str) -> None:
        self.sandbox.start(node)

    def situation(self) -> str:
        shown = ask("sinfo", "-N", "-l"), ask("scontrol", "show", "node"), ask("squeue", "-a", "-l")
        return "\n".join((*shown, *(path.read_text() for path in find(self.base, "master.log"))))

    def preempt(self, job: ScenarioJob) -> None:
        line = ("sbatch", "--parsable", "-N3", "--exclusive", "--output=/dev/null", "--wrap", "sleep 600")
        other = ask(*line).strip()
        until(lambda: "PD" in ask("squeue", "-hj", job.id.removeprefix("slurm-"), "-o", "%t"), "preemption")
        ask("scancel", other)

    def start_smaller(self, base: Path) -> ScenarioJob:
        """Slurm grants a gang as a whole. So the job becomes smaller by losing a node while another job has the
        rest."""
        job = self.elastic(base)
        job.wait_started(0), job.wait_started(1)
        other = ScenarioJob(self, base, role={"resources": self.room})
        other.wait_started(0)
        node = next(job.node_of(index) for index in (0, 1) if not self.is_beside_master(job, job.node_of(index)))
        self.lose(node)
        job.wait_started(0, 2)
        assert not job.has_started(1, 2)
        self.restore(node)
        other.finish()
        return job


class KubernetesCluster(Cluster):
    """The sandbox of Kubernetes: two nodes of four GPUs."""

    name, places = "kubernetes", 2

    def __init__(self, request: pytest.FixtureRequest, base: Path) -> None:
        self.sandbox: KubernetesSandbox = request.getfixturevalue("kubernetes")
        self.base = base

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with kubernetes_settings(self.sandbox) as environment:
            environment.setenv("HOWDAH_HOME", str(self.base / "howdah"))
            environment.delenv("HADOOP_CONF_DIR", raising=False)
            yield

    def is_beside_master(self, job: ScenarioJob, node: str) -> bool:
        selector = f"{manifests.JOB}%3D{job.id},{manifests.ROLE}%3D{manifests.MASTER}"
        pods = self.sandbox.api().get(f"{PODS}?labelSelector={selector}")["items"]
        return any(pod["spec"]["nodeName"] == node for pod in pods)

    def lose(self, node: str) -> None:
        self.sandbox.stop(node)

    def restore(self, node: str) -> None:
        self.sandbox.start(node)
        self.sandbox.wait_nodes(2)

    def preempt(self, job: ScenarioJob) -> None:
        api, name = self.sandbox.api(), f"important-{os.urandom(4).hex()}"
        api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 1000000})
        gpus = {"cpu": "100m", "memory": "64Mi", "nvidia.com/gpu": "4"}
        container = {
            "name": "main",
            "image": self.sandbox.client()["image"],
            "command": ["sleep", "600"],
            "resources": {"limits": gpus},
        }
        pod = {"containers": [container], "priorityClassName": name, "terminationGracePeriodSeconds": 0}
        api.create(PODS, {"metadata": {"name": name}, "spec": pod})
        until(lambda: api.get(f"{PODS}/{name}")["status"].get("phase") == "Running", "the important pod")
        api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
        api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")


class SshCluster(Cluster):
    """Three hosts that ssh reaches, with two GPUs each."""

    name, room = "ssh", Resources(256, gpus=2)
    lacks: ClassVar[Mapping[str, str]] = {"preempted": "there is no scheduler"}

    def __init__(self, request: pytest.FixtureRequest, base: Path) -> None:
        if SSHD is None or shutil.which("ssh") is None:
            pytest.skip("needs openssh-server and openssh-client")
        self.base = base
        self.hosts = SshHosts(base)
        request.addfinalizer(self.hosts.stop)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HOWDAH_HOME", str(self.base / "howdah"))
            environment.delenv("HADOOP_CONF_DIR", raising=False)
            for name, value in self.hosts.settings().items():
                environment.setenv(name, value)
            yield

    def remains(self, job: ScenarioJob) -> list[str]:
        places = (
            *(host.tmp.glob(f"*/{job.id}") for host in self.hosts.hosts),
            find(self.base, f"{job.id}/credentials"),
        )
        return [str(path) for found in places for path in found]

    def lose(self, node: str) -> None:
        next(host for host in self.hosts.hosts if host.name == node).lose()

    def restore(self, node: str) -> None:
        next(host for host in self.hosts.hosts if host.name == node).start()


class SparkCluster(Cluster):
    """The sandbox of Spark: two workers of four GPUs."""

    name, places = "spark", 2
    lacks: ClassVar[Mapping[str, str]] = {"preempted": "Spark's own cluster manager takes nothing back"}

    def __init__(self, request: pytest.FixtureRequest, base: Path) -> None:
        self.sandbox: SparkSandbox = request.getfixturevalue("spark")
        self.base = base

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            for name, value in self.sandbox.env().items():
                environment.setenv(name, value)
            environment.setenv("HOWDAH_HOME", str(self.base / "howdah"))
            environment.setenv("HOWDAH_SPARK_HOME", str(self.base))
            environment.delenv("HADOOP_CONF_DIR", raising=False)
            yield

    def lose(self, node: str) -> None:
        self.sandbox.stop(_worker(node), 9)

    def restore(self, node: str) -> None:
        self.sandbox.start(_worker(node))


def _worker(node: str) -> str:
    return f"worker{int(node.rpartition('.')[2]) - 10}"


CLUSTERS: Mapping[str, type[Cluster]] = {
    cluster.name: cluster
    for cluster in (LocalMachine, YarnCluster, SlurmCluster, KubernetesCluster, SshCluster, SparkCluster)
}
