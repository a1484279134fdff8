"""The two faces of an engine: `Engine` outside the cluster, `Allocator` inside it.

An engine knows the master's command line, not its code: every engine starts `python -m howdah.master`. Both are found
by entry point (groups `howdah.engines` and `howdah.allocators`), so that a stranger's package can add one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from howdah.spec import Container, JobReport, Outcome, Plan, StagedJob, TaskId
from howdah.spec.events import Event

Progress = Callable[[str, int, int], None]
"""`progress(what, done_bytes, total_bytes)`, called from time to time during an upload."""


def silent(what: str, done: int, total: int) -> None:
    """A Progress that shows nothing."""


class Engine(ABC):
    """Outside the cluster. Built as `cls(settings)` where settings are the resolved configuration (name -> value).

    Every method raises EngineUnavailable when the cluster does not answer and EngineRejected when it answers no.
    """

    name: str

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

    @abstractmethod
    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        """Logs of an ended job: pairs of a heading (`worker:1 attempt 1 stdout`) and its bytes, in pieces.

        `task` None gives all tasks and the master; `stream` is `stdout`, `stderr`, or "" for both.
        """


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

    The job's files and the runtime are in the container's working directory in addition. The secrets arrive in the
    credentials file that HOWDAH_CREDENTIALS or HADOOP_TOKEN_FILE_LOCATION names (`howdah.wire.credentials`).
    """

    task: TaskId
    attempt: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, bytes] = field(default_factory=dict)


class Allocator(ABC):
    """Inside the cluster, driven by the master's one loop. Built by `await cls.open(context)`, which registers."""

    @classmethod
    @abstractmethod
    async def open(cls, context: MasterContext) -> Allocator:
        """Register with the engine.

        Raises:
            EngineUnavailable, EngineRejected: it does not let us in.
        """

    @abstractmethod
    def request(self, role: str, count: int) -> None:
        """From now on `count` containers of `role` are wanted that have not been granted yet (absolute, 0 cancels)."""

    @abstractmethod
    async def poll(self) -> list[Event]:
        """Wait for news, at most about a second: Allocated, ContainerEnded, Noted, CancelRequested."""

    @abstractmethod
    async def launch(self, container: Container, launch: Launch) -> None:
        """Start it in the container; an error is raised and the container is as good as ended."""

    @abstractmethod
    def release(self, container_id: str) -> None:
        """Give it back; whatever runs in it is killed."""

    @abstractmethod
    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        """Tell the engine how the job ended; the master exits right after."""

    def admits(self, peer: str, proxy_user: str) -> bool:
        """Whether a page request from IP `peer` comes through the engine's own proxy, for a user who may look."""
        return False
