"""Who this executor is: from its environment and its credentials file, once, at the start."""

from __future__ import annotations

import os
import socket
import urllib.parse
from dataclasses import dataclass, field
from typing import Dict, Mapping, Tuple

from howdah.wire import auth, credentials

# Ours alone: the program does not see them.
PRIVATE = (
    "HOWDAH_CREDENTIALS",
    "HOWDAH_MASTER",
    "HOWDAH_DIRECTORY",
    "HOWDAH_LOG_DIR",
    "HOWDAH_TASKS_DIR",
    "HOWDAH_REASSIGNED",
    "HOWDAH_PREFLIGHT_PASSED",
    "HOWDAH_WORK_DIR",
    "HOWDAH_SWEEPER",
    "HOWDAH_HOST",
)


@dataclass(frozen=True)
class Identity:
    """One attempt of one task, where its master is, and the key that proves it.

    `secrets` are the user's, by variable. `directory` is the URI of the job's directory, where a master that takes over
    leaves word.
    """

    task: str
    attempt: int
    master: Tuple[str, int]
    key: bytes = field(repr=False)
    host: str = ""
    log_directory: str = "."
    work_directory: str = ""
    directory: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def principal(self) -> str:
        return auth.executor_principal(self.task, self.attempt)

    def numeric(self, known: str) -> str:
        """The address others reach us by, in numbers: the `known` one, unless that is the loopback, as `host` often
        is to its own machine: then the one on the route to the master."""
        return known if known and not known.startswith("127.") else _host_towards(self.master)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Identity:
        """Read it.

        Raises:
            KeyError, ValueError, OSError: a variable is absent or wrong, or the credentials cannot be read.
        """
        master = urllib.parse.urlsplit(environment["HOWDAH_MASTER"])
        address = (master.hostname or "", master.port or 80)
        known = credentials.load(environment.get("HOWDAH_CREDENTIALS") or environment["HADOOP_TOKEN_FILE_LOCATION"])
        key = known.secrets[credentials.JOB_KEY]
        task, attempt = environment["HOWDAH_TASK"], environment["HOWDAH_ATTEMPT"]
        if "HOWDAH_REASSIGNED" in environment:  # the key is that of the attempt which was launched here
            key = auth.derive(key, auth.executor_principal(task, int(attempt)))
        return cls(
            task=task,
            attempt=int(attempt),
            master=address,
            key=key,
            host=environment.get("HOWDAH_HOST") or environment.get("NM_HOST") or _host_towards(address),
            log_directory=os.path.abspath(environment.get("HOWDAH_LOG_DIR", ".")),
            work_directory=environment.get("HOWDAH_WORK_DIR", ""),
            directory=environment.get("HOWDAH_DIRECTORY", ""),
            secrets=_secrets(known.secrets),
        )


def share_credentials(environment: Mapping[str, str], share: bool) -> None:
    """Let the processes that this one becomes, or starts, have its credentials, or let them not; where the engine gave
    them as an open file that is on no disk."""
    directory, _, file = environment.get("HOWDAH_CREDENTIALS", "").rpartition("/")
    if directory == "/proc/self/fd":
        os.set_inheritable(int(file), share)


def _secrets(secrets: Mapping[str, bytes]) -> Dict[str, str]:
    return {
        name[len(credentials.SECRET_PREFIX) :]: os.fsdecode(value)
        for name, value in secrets.items()
        if name.startswith(credentials.SECRET_PREFIX)
    }


def _host_towards(address: Tuple[str, int]) -> str:
    """Our address on the route to the master: what the others reach us by."""
    family, kind, protocol, _, where = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])
