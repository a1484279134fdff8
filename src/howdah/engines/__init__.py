"""The two faces of an engine: `Engine` outside the cluster, `Allocator` inside it.

An engine knows the master's command line, not its code: every engine starts `python -m howdah.master`. Both are found
by entry point (groups `howdah.engines` and `howdah.allocators`), so that a stranger's package can add one.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from howdah.errors import HowdahError
from howdah.spec import Container, Exit, JobReport, JobSpec, Outcome, Plan, StagedFile, StagedJob, TaskId
from howdah.spec.values import dataclass

if TYPE_CHECKING:
    from howdah.spec.events import Event

Progress = Callable[[str, int, int], None]
"""`progress(what, done_bytes, total_bytes)`, called from time to time during an upload."""


def silent(what: str, done: int, total: int) -> None:
    """A Progress that shows nothing."""


@dataclass(frozen=True)
class PendingReason:
    """Why a job waits. `kind` is `said` (with a `text` of the engine's own), `queue-stopped`, `queue-limit`,
    `label-limit`, `queue-pending`, `user-limit`, `label`, `constraint`, `too-small`, `full`, `room` or `nodes-out`;
    `facts` are what a sentence about it needs (`howdah.cli.explain`)."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Engine(ABC):
    """Outside the cluster. Built as `cls(settings)` where settings are the resolved configuration (name -> value).

    Every method raises EngineUnavailable when the cluster does not answer and EngineRejected when it answers no.
    """

    name: str
    credentials_end: float = 0.0
    """When what the job submitted last carries lets it into no file system any more: seconds since 1970; 0.0: never."""

    @property
    @abstractmethod
    def home(self) -> str:
        """URI of the directory below which howdah keeps this user's jobs (`jobs/<id>`) and cache (`cache/`)."""

    @abstractmethod
    def plan(self, job: StagedJob) -> Plan:
        """What submit would do. Pure but for questions to the cluster: nothing is written anywhere.

        Raises:
            EngineRejected: it can never run there (unknown queue, an ask larger than any node, no such resource).
        """

    @abstractmethod
    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = silent) -> str:
        """Upload what is missing, start the master; the job's id. The only call that changes the cluster.

        On an error nothing is left behind. `secrets` are the values of the job's secret variables, by name.
        """

    @abstractmethod
    def describe(self, job_id: str | None = None) -> list[JobReport]:
        """That job, or all of this user's, newest first. An unknown id gives an empty list."""

    @abstractmethod
    def cancel(self, job_id: str) -> None:
        """End it by force; nothing happens when it has ended. (A living master is asked first, by the client.)"""

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        """Why it has no more containers: `missing` ones by role; none means that it waits for its master's."""
        return []

    @abstractmethod
    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        """Logs of an ended job: pairs of a heading (`worker:1 attempt 1 stdout`) and its bytes, in pieces.

        `task` None gives all tasks and the master; `stream` is `stdout`, `stderr`, "" for both, or "*" for both and the
        index of their times (`howdah.logs.stream_index`), which then has the heading `worker:1 attempt 1 times`.
        """

    def logs_complete(self, job_id: str) -> bool:
        """Whether `logs` gives all that there will be of an ended job; waits a minute for that where it takes time."""
        return True


@dataclass(frozen=True)
class MasterContext:
    """What an allocator may know of the master it serves: the job, its id, its directory, where its API listens."""

    job_id: str
    staged: StagedJob
    directory: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """Base URL of the master's API and page."""
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True)
class Launch:
    """What runs in a container: an argument vector, variables, and secrets (by name) that only its process may read.

    The job's files (or `files` in their place) and the runtime are in the container's working directory in addition.
    The secrets arrive in the credentials file that HOWDAH_CREDENTIALS or HADOOP_TOKEN_FILE_LOCATION names
    (`howdah.wire.credentials`).
    """

    task: TaskId
    attempt: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, bytes] = field(default_factory=dict)
    files: tuple[StagedFile, ...] | None = None


@dataclass(frozen=True)
class ContainerPreferences:
    """What the containers of one ask should be like, beyond what the spec says of their role.

    `memory_mib` in place of the role's (0: the role's). `prefer` says how many would like to be on which host, if it
    has room soon; `avoid` are hosts not to take. A `spare` is not waited for: others must not wait behind it.
    """

    memory_mib: int = 0
    prefer: Mapping[str, int] = field(default_factory=dict)
    avoid: tuple[str, ...] = ()
    spare: bool = False


MASTER_ATTEMPTS, ATTEMPTS_WITHIN_S = 2, 600.0
"""A master that is killed is followed by another, which keeps the containers, unless as many were killed within ten
minutes; YARN has a limit of its own to the number."""

NO_PREFERENCES = ContainerPreferences()

GONE = "its container was gone when the master had been replaced"


class AttemptOver(HowdahError):
    """This attempt of the master is over. What it leaves is the next one's, if the engine starts one."""


class Allocator(ABC):
    """Inside the cluster, driven by the master's one loop. Built by `await cls.open(context)`, which registers.

    `attempt` is the master's: above 1 another one ran this job and has ended before it.
    """

    attempt: int = 1
    restarts: bool = False
    """Whether the engine may start another master when this one ends without `unregister`."""
    progress: float = 0.0
    """How far the job is (0..1), as the master sets it; for engines that show it to people."""
    serves_after_end: bool = False
    """Whether the master may go on answering open pages after `unregister`: its process takes nobody's place, and its
    address leads to nobody else."""

    @classmethod
    @abstractmethod
    async def open(cls, context: MasterContext) -> Allocator:
        """Register with the engine.

        Raises:
            EngineUnavailable, EngineRejected: it does not let us in.
            AttemptOver: it has ended this attempt meanwhile.
        """

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        """Take over the containers of the attempt before. A master that takes over calls this once, with all that it
        knows of.

        Those that still run belong to this attempt from now on; of each other one the answer says, by id, how it
        ended. Where the engine can't tell, the cause is `withdrawn`, which is nobody's fault: it uses up no retry, and
        is held against no node. What the engine holds beyond `containers` is given back.
        """
        return {container.id: Exit("withdrawn", detail=GONE) for container in containers}

    def may_be_replaced(self) -> bool:
        """Whether the engine has not heard this master for so long that it may have started another one."""
        return False

    def silent_s(self) -> float:
        """For how long the engine has not answered this master: it may have been cut off, and given up for another
        reason than its silence."""
        return 0.0

    def signalled(self, signal: str) -> Event:
        """What it means that this process got `signal` (`SIGTERM`): a cancellation, unless the engine ends masters in
        this way to start others."""
        from howdah.spec.events import CancelRequested  # clients do without

        return CancelRequested(time.time(), f"signal {signal}")

    @abstractmethod
    def request(self, role: str, count: int, wish: ContainerPreferences = NO_PREFERENCES) -> None:
        """From now on `count` containers of `role` are wanted that have not been granted yet (absolute, 0 cancels)."""

    @abstractmethod
    async def poll(self) -> list[Event]:
        """Wait for news, at most about a second: Allocated, ContainerEnded, LossAnnounced, Noted, CancelRequested,
        AllocationLost, MasterEnded."""

    @abstractmethod
    async def launch(self, container: Container, launch: Launch) -> None:
        """Start it in the container; an error is raised and the container is as good as ended."""

    @abstractmethod
    def release(self, container_id: str) -> None:
        """Give it back; whatever runs in it is killed."""

    @abstractmethod
    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        """Tell the engine how the job ended; the master exits right after, but for `serves_after_end`."""

    def trusts_proxy_request(self, peer: str, proxy_user: str) -> bool:
        """Whether a page request from IP `peer` comes through the engine's own proxy, for a user who may look."""
        return False
