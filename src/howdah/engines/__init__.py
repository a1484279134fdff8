"""The two faces of an engine: `Engine` outside the cluster, `Allocator` inside it.

An engine knows the master's command line, not its code: every engine starts `python -m howdah.master`. Both are found
by name (`howdah.spec.plugins`), so that another package can add an engine.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.engines.pending_reasons import PendingReason
from howdah.errors import HowdahError, StagingError
from howdah.spec import (
    Container,
    Exit,
    JobReport,
    JobSpec,
    Outcome,
    Plan,
    Resources,
    Role,
    StagedFile,
    StagedJob,
    TaskId,
)
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.storage.progress import Progress, no_progress
from howdah.wire import auth

if TYPE_CHECKING:
    from howdah.engines.pull_launch import LaunchOffers
    from howdah.spec.events import Event
    from howdah.wire.messages import ImageCheck

__all__ = [
    "ATTEMPTS_WITHIN_S",
    "GONE",
    "MASTER_ATTEMPTS",
    "NO_PREFERENCES",
    "AccountedTask",
    "Allocator",
    "AttemptOver",
    "ContainerPreferences",
    "Engine",
    "Launch",
    "MasterContext",
    "PendingReason",
    "Progress",
    "no_progress",
]


@dataclass(frozen=True)
class AccountedTask:
    """The cluster's accounting record of one run of a task's container."""

    task: str
    """The task, `worker:0`, or `master`."""
    state: str
    """The state in which the task ended, in the words of the accounting."""
    code: int
    """The status with which the container ended."""
    signal: int
    """The number of the signal that ended it; 0 for none."""
    elapsed_s: float
    """The wall time for which the container ran, in seconds."""
    memory_mib: float
    """The most memory that was measured for it; 0.0 if it was not measured."""
    node: str
    """The node on which the container ran."""


class Engine(ABC):
    """An engine as it is used outside the cluster. It is built as `cls(settings)`, with the resolved settings by name.

    Every method raises EngineUnavailable if the cluster does not answer, and EngineRejected if it refuses.
    """

    name: str
    one_machine: bool = False
    """Whether jobs run on the machine from which they are submitted, with its files, its Python and its howdah, and on
    no other."""
    has_tunnel: bool = False
    """Whether links to a page lead through a tunnel of this process, and stop working when the process ends."""
    home_protects_secrets: bool = True
    """Whether file modes keep other users from reading the files in `home`, as in a shared directory or on HDFS. If
    they do not, as on an object store, `submit` puts neither the job's key nor other secrets there, and `job_key` gets
    the key from another place."""
    credentials_end: float = 0.0
    """When the credentials of the last submitted job expire, in seconds since 1970; 0.0: never."""

    @property
    @abstractmethod
    def home(self) -> str:
        """Return the URI of the directory below which howdah keeps this user's jobs (`jobs/<id>`) and cache (`cache/`).

        It is on any file system that the client, the master and the executors reach by this URI: a directory of this
        machine or one that all nodes share, HDFS, or an object store.
        """

    @property
    def cluster(self) -> str:
        """Return a text that distinguishes this cluster from others of the engine, such as its address. It is equal for
        all settings that lead to the same cluster. The cluster is not asked."""
        return self.home

    @abstractmethod
    def plan(self, job: StagedJob) -> Plan:
        """Return what `submit` would do. It may ask the cluster questions, and writes nothing anywhere.

        Raises:
            EngineRejected: it can never run there (unknown queue, a request larger than any node, no such resource).
        """

    @abstractmethod
    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        """Upload the files that are missing, start the master, and return the job's id. No other method changes the
        cluster.

        On an error nothing is left behind. `secrets` are the values of the job's secret variables, by name.
        """

    @abstractmethod
    def describe(self, job_id: str | None = None) -> list[JobReport]:
        """Return the report of that job, or of all of this user's jobs, newest first. An unknown id gives an empty
        list."""

    def reach(self, report: JobReport) -> JobReport:
        """Return the report of a running job with an address of its master that this machine reaches. If that needs a
        tunnel, the tunnel stays open until this process ends, and makes `has_tunnel` true."""
        return report

    def reach_url(self, job_id: str, url: str) -> str:
        """Return a URL by which this machine reaches the server of a task of the running job at `url`; if necessary it
        leads through a tunnel, as in `reach`."""
        return url

    @abstractmethod
    def cancel(self, job_id: str) -> None:
        """End the job by force; do nothing if it has ended. (The client asks a living master first.)"""

    def stop_limit_s(self, job_id: str) -> float:
        """Return the seconds after the return of `cancel` within which a job's programs may still stop; 0 if `cancel`
        waits for them, or if no program stops later."""
        return 0.0

    def job_key(self, report: JobReport) -> bytes | None:
        """Return the key of a job, from which the callers of its master derive their keys; None once the job has ended.

        Raises:
            StagingError: this user may not read the key, or it is damaged.
        """
        from howdah.storage.factory import filesystem  # masters do not need this module

        uri = f"{report.directory}/key"
        files = filesystem(uri, report.conf_dir)
        try:
            return auth.read_key(files.read_bytes(uri).decode())
        except ValueError as error:
            raise StagingError(f"{uri}: is not a key: {error}") from None
        except StagingError:
            if files.exists(uri):
                raise
            return None

    def node_count(self) -> int:
        """Return the number of nodes that take containers now."""
        return 1

    def sees(self, path: str | Path) -> bool:
        """Return whether the nodes see this machine's file or directory at `path`."""
        return self.one_machine

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        """Return why the job gets no more containers, for callers outside the cluster. `missing` counts the missing
        containers by role; an empty one means that the job waits for its master's container."""
        return []

    def accounting(self, job_id: str) -> list[AccountedTask]:
        """Return the cluster's accounting records of an ended job: each run of each task, in order; [] if the cluster
        keeps no accounts."""
        return []

    @abstractmethod
    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield the logs of an ended job: pairs of a heading (`worker:1 attempt 1 stdout`) and a piece of its bytes.

        `task` None gives all tasks and the master; `stream` is `stdout`, `stderr`, "" for both, or "*" for both and the
        index of their times (`howdah.logs.stream_index`), which then has the heading `worker:1 attempt 1 times`.

        Raises:
            JobNotFound: the engine does not know the job any more.
        """

    def logs_complete(self, job_id: str) -> bool:
        """Return whether `logs` gives the complete logs of an ended job. On an engine that needs time for that, wait up
        to a minute."""
        return True


@dataclass(frozen=True)
class MasterContext:
    """The facts about a master that its allocator may use."""

    job_id: str
    """The job's id."""
    staged: StagedJob
    """The job as it was staged."""
    directory: str
    """The URI of the job's directory."""
    host: str
    """The host by which others reach the master's API."""
    port: int
    """The port at which the master's API listens."""
    launches: LaunchOffers | None = None
    """The answers for containers that ask the master what to run (`howdah.engines.pull_launch`)."""

    @property
    def url(self) -> str:
        """Return the base URL of the master's API and page."""
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True)
class Launch:
    """Describes what an allocator starts in a container."""

    task: TaskId
    """The task that the container is for."""
    attempt: int
    """The number of the task's attempt."""
    command: tuple[str, ...]
    """The executor's argument vector."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the executor."""
    secrets: Mapping[str, bytes] = field(default_factory=dict)
    """Secrets by name, which only the executor may read. They arrive in the credentials file that HOWDAH_CREDENTIALS
    names (`howdah.wire.credentials`)."""
    files: tuple[StagedFile, ...] | None = None
    """The files in the container's working directory, beside the runtime; None: the job's files."""


@dataclass(frozen=True)
class ContainerPreferences:
    """Says which containers one request should get, beyond the spec of their role."""

    memory_mib: int = 0
    """The memory of each container in place of the role's; 0: the role's."""
    prefer: Mapping[str, int] = field(default_factory=dict)
    """The number of containers that should be on each host, if the host has room soon."""
    avoid: tuple[str, ...] = ()
    """Hosts on which no container should be."""
    spare: bool = False
    """Whether the containers are spares: the job does not wait for them, and other jobs must not wait behind them."""

    def resources_for(self, role: Role) -> Resources:
        """Return the resources of each container of the request: the role's resources, with the preferred memory if
        there is one."""
        return replace(role.resources, memory_mib=self.memory_mib) if self.memory_mib else role.resources


MASTER_ATTEMPTS, ATTEMPTS_WITHIN_S = 2, 600.0
"""A master that is killed is followed by another, which keeps the containers, until MASTER_ATTEMPTS masters were
killed. The limit counts all of them, or, where the engine forgets earlier ones as YARN does, those within
ATTEMPTS_WITHIN_S seconds. YARN has its own limit to the number, too."""

NO_PREFERENCES = ContainerPreferences()
"""Lets the engine choose the hosts."""

GONE = message("its container was gone when the new master took over")
"""The end that `adopt` reports for a container whose end the engine does not know."""


class AttemptOver(HowdahError):
    """The attempt of the master is over. The next attempt, if the engine starts one, takes over the containers."""


class Allocator(ABC):
    """An engine as the master uses it inside the cluster. It is built and registered by `await cls.open(context)`."""

    one_machine: bool = False
    """Whether all containers are on one machine, so that a failure there cannot be avoided on another machine."""
    attempt: int = 1
    """The number of the master's attempt: above 1, an earlier master ran this job and has ended."""
    restarts: bool = False
    """Whether the engine may start another master if this one ends without `unregister`."""
    runs_images: bool = False
    """Whether the engine itself runs each container in the image of its role. Otherwise executors run their programs in
    the image, by podman, docker or apptainer."""
    needs_images: bool = False
    """Whether an engine that `runs_images` starts no container without an image, even if the job names none."""
    queue: str = ""
    """The queue in which the engine has put the job; "" if it has none, or does not say."""
    signal_pause_s: float = 0.0
    """Seconds for which the master waits, after a signal, before it stops programs: an engine that ends masters by
    signals may send the same signal to all programs, which must not get it twice."""
    progress: float = 0.0
    """The progress of the job (0..1). The master sets it, for engines that show it to people."""
    kills_what_is_gone: bool = False
    """Whether, after `adopt`, nothing runs any more in containers that are not this attempt's, so that no task has to
    wait for their leases."""
    page_hosts: tuple[str, ...] = ()
    """Further names (`name:port`) under which the engine shows the master's page to people."""
    serves_after_end: bool = False
    """Whether the master may go on answering open pages after `unregister`: its process takes no resource from another
    job, and its address is not given to anything else."""

    @classmethod
    @abstractmethod
    async def open(cls, context: MasterContext) -> Allocator:
        """Register with the engine.

        Raises:
            EngineUnavailable, EngineRejected: the registration failed or was refused.
            AttemptOver: it has ended this attempt meanwhile.
        """

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        """Take over the containers of the earlier attempt. A master that takes over calls this once, with all
        containers that it knows of.

        The containers that still run belong to this attempt from now on. For each other container the answer gives its
        end, by id. If the engine does not know the end, its cause is `withdrawn`, for which no task or node is to blame
        and which uses up no retry. Containers that the engine holds beyond `containers` are released.
        """
        return {container.id: Exit("withdrawn", detail=GONE) for container in containers}

    @staticmethod
    def image_check(job: JobSpec, role: str, host: str) -> ImageCheck | None:  # noqa: ARG004 - for engines to use
        """Return how an executor of `role` on `host` finds out whether the engine runs it in the role's image.

        None if an engine that `runs_images` never starts a container without its image.
        """
        return None

    @classmethod
    def extra_start_s(cls, job: JobSpec) -> float:
        """Return the seconds beyond the usual that an executor may take until its first report: within them, nodes must
        have fetched the images of a job before its executors start; 0.0 if executors start without an image."""
        from howdah.spec.containers import has_images  # clients do not need this module

        gets_images = cls.runs_images and (cls.needs_images or has_images(job))
        return (job.timeouts.localise_s or math.inf) if gets_images else 0.0

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        """Return why the engine has not granted the containers that are `missing`, by role; [] if it does not tell a
        master. `job` has the resources that are asked for now."""
        return []

    def may_be_replaced(self) -> bool:
        """Return whether the engine has not heard this master for so long that it may have started another one."""
        return False

    def silent_s(self) -> float:
        """Return the seconds for which the engine has not answered this master. The master may have been cut off, and
        the engine may have given it up for another reason than its silence."""
        return 0.0

    def signalled(self, signal: str) -> Event:
        """Return the event that `signal` (`SIGTERM`) means for this process: a cancellation, unless the engine ends
        masters by signals in order to start others."""
        from howdah.spec.events import CancelRequested  # clients do not need this module

        return CancelRequested(time.time(), f"signal {signal}")

    @abstractmethod
    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        """Ask for `count` containers of `role` that have not been granted yet. This replaces the earlier number, and 0
        cancels the request.

        The master makes all requests of a gang, or of a stage, without awaiting anything between them. So an engine
        that grants a gang as a whole knows all of it when its `poll` goes on. `MasterContext.staged` has every role
        that may be requested, including TensorBoard's.
        """

    @abstractmethod
    async def poll(self) -> list[Event]:
        """Wait for events, at most about a second: Allocated, ContainerEnded, LossAnnounced, Noted, CancelRequested,
        AllocationLost, MasterEnded."""

    @abstractmethod
    async def launch(self, container: Container, launch: Launch) -> None:
        """Start the executor in a container; after an error the container counts as ended."""

    @abstractmethod
    def release(self, container_id: str, cause: str = "") -> None:
        """Return a container to the engine, which kills all of its processes.

        `cause` is the cause that is recorded for the end of the container's attempt, "" if the container is not needed
        any more. After `silent` or `lost` its node may be dead: an engine that grants places itself must not grant this
        one again before it knows that the node is alive.
        """

    @abstractmethod
    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        """Report to the engine how the job ended; the master exits right after, unless `serves_after_end`."""

    def trusts_proxy_request(self, peer: str, proxy_user: str) -> bool:
        """Return whether a page request from IP `peer` comes through the engine's own proxy, for a user who may view
        the job."""
        return False
