"""`Identity` says which attempt of which task an executor runs; it is read once, from environment and credentials."""

from __future__ import annotations

import dataclasses
import os
import socket
import urllib.parse
from dataclasses import field
from typing import Mapping, Tuple

from howdah.spec import uris
from howdah.spec.task import TaskId
from howdah.wire import auth, credentials
from howdah.wire.launch_messages import STORES_LOGS, TERM_GRACE_S, TERM_TO_ALL

PRIVATE = (
    "HOWDAH_CREDENTIALS",
    "HOWDAH_MASTER",
    "HOWDAH_DIRECTORY",
    "HOWDAH_LOG_DIR",
    "HOWDAH_TASKS_DIR",
    "HOWDAH_REASSIGNED",
    "HOWDAH_PREFLIGHT_PASSED",
    "HOWDAH_WORK_DIR",
    "HOWDAH_ORPHAN_KILLER",
    "HOWDAH_HOST",
    STORES_LOGS,
    TERM_GRACE_S,
    TERM_TO_ALL,
)
"""Variables of the executor that its program does not see."""


@dataclasses.dataclass(frozen=True)
class Identity:
    """One attempt of one task."""

    task: str
    """`worker:1`."""
    attempt: int
    """The number of the attempt."""
    master: Tuple[str, int]
    """Host and port of the master at the start."""
    key: bytes = field(repr=False)
    """The key that this attempt signs with."""
    host: str = ""
    """The name by which others reach this node."""
    log_directory: str = "."
    """Where the task's logs are written."""
    work_directory: str = ""
    """Where the program runs; "" is the current directory."""
    directory: str = ""
    """URI of the job's directory, where a master that takes over writes its address."""
    stored_logs: str = ""
    """URI of the directory to which the executor copies its logs; "" where they stay in `log_directory`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The user's secrets, by variable."""

    @property
    def principal(self) -> str:
        """Return the name under which the executor signs its requests."""
        return auth.executor_principal(self.task, self.attempt)

    def numeric(self, address: str) -> str:
        """Return the numeric address by which others reach this node.

        That is `address`, unless it is the loopback, as `host` often is on its own machine: then it is the address on
        the route to the master.
        """
        return address if address and not address.startswith("127.") else _host_towards(self.master)

    def container_directory(self, directory: str) -> str:
        """Return the directory that only this container has; the executor's working directory is `directory`."""
        return os.path.dirname(os.path.abspath(self.work_directory)) if self.work_directory else directory

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Identity:
        """Read the identity.

        Raises:
            KeyError, ValueError, OSError: a variable is absent or wrong, or the credentials cannot be read.
        """
        master = urllib.parse.urlsplit(environment["HOWDAH_MASTER"])
        address = (master.hostname or "", master.port or 80)
        loaded = credentials.load(environment["HOWDAH_CREDENTIALS"])
        key, directory = loaded.secrets[credentials.JOB_KEY], environment.get("HOWDAH_DIRECTORY", "")
        task, attempt = environment["HOWDAH_TASK"], environment["HOWDAH_ATTEMPT"]
        if "HOWDAH_REASSIGNED" in environment:  # the key is that of the attempt which was launched here
            key = auth.derive(key, auth.executor_principal(task, int(attempt)))
        return cls(
            task=task,
            attempt=int(attempt),
            master=address,
            key=key,
            host=environment.get("HOWDAH_HOST") or _host_towards(address),
            log_directory=os.path.abspath(environment.get("HOWDAH_LOG_DIR", ".")),
            work_directory=environment.get("HOWDAH_WORK_DIR", ""),
            directory=directory,
            stored_logs=_stored_logs(directory, task, attempt) if STORES_LOGS in environment else "",
            secrets={
                name[len(credentials.SECRET_PREFIX) :]: os.fsdecode(value)
                for name, value in loaded.secrets.items()
                if name.startswith(credentials.SECRET_PREFIX)
            },
        )


def _stored_logs(directory: str, task: str, attempt: str) -> str:
    if uris.split(directory)[0] == "file":  # `log_directory` is there
        return ""
    return uris.join(directory, "tasks", TaskId.parse(task).slug, attempt)


def share_credentials(share: bool) -> None:
    """Let child processes and programs started by exec read the credentials, or stop that, if the credentials are an
    open file that is on no disk."""
    directory, _, file = os.environ.get("HOWDAH_CREDENTIALS", "").rpartition("/")
    if directory == "/proc/self/fd":
        os.set_inheritable(int(file), share)


def _host_towards(address: Tuple[str, int]) -> str:
    """Return this node's address on the route to the master."""
    family, kind, protocol, _, where = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])
