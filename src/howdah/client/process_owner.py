"""Finds the task of a process of this machine: any process of a program's tree, such as a data loader's worker.

The process and its ancestors are examined: the variables that howdah gave to the program, and the control group in
which the engine put it. The process's user and root can read its variables, every user its control group.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from howdah.engines.info import EngineInfo, job_of_container, known
from howdah.errors import NotFound
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class ProcessOwner:
    """The facts that the machine knows of a process; an unknown field is "" or 0."""

    pids: tuple[int, ...]
    """The process and its ancestors, the nearest first."""
    job: str = ""
    task: str = ""
    attempt: int = 0
    container: str = ""


def is_here(host: str) -> bool:
    """Return whether `host` is a name or an address of this machine."""
    name = socket.gethostname()
    if host in ("localhost", name, name.partition(".")[0], socket.getfqdn()):
        return True
    try:
        addresses = {found[4][0] for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    return any(_is_own(str(address)) for address in addresses)


def _is_own(address: str) -> bool:
    """Return whether an address can be bound, which is true only for an address of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family) as probe:
        probe.bind((address, 0))
        return True
    return False


def owner_of(pid: int) -> ProcessOwner:
    """Return the facts that this machine knows of a process.

    Raises:
        NotFound: no process has this pid.
    """
    if not Path(f"/proc/{pid}").exists():
        raise NotFound(f"no process {pid} runs on this machine")
    pids = tuple(_ancestors(pid))
    engines = [info for _, info in known()]  # once: the search for packages takes 10 ms
    container = next(filter(None, (_container(each, engines) for each in pids)), "")
    for each in pids:
        variables = _environment(each)
        container = container or variables.get("HOWDAH_CONTAINER", "")
        if "HOWDAH_TASK" in variables and (job := variables.get("HOWDAH_JOB_ID") or job_of_container(container)):
            attempt = variables.get("HOWDAH_ATTEMPT", "")
            number = int(attempt) if attempt.isdecimal() else 0
            return ProcessOwner(pids, job, variables["HOWDAH_TASK"], number, container)
    return ProcessOwner(pids, job_of_container(container), container=container)


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has just ended
            return
        pid = int(status.rpartition(")")[2].split()[1])


def _environment(pid: int) -> dict[str, str]:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(word).partition("=") for word in words)
    return {name: value for name, _, value in pairs if name.startswith("HOWDAH_")}


def _container(pid: int, engines: Sequence[EngineInfo]) -> str:
    """Return the id of the container after which one of the process's control groups is named; "" if there is none."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    names = (name.removeprefix("howdah-") for name in re.split(r"[/:\n]", text))
    return next((name for name in names if any(engine.job_of_container(name) for engine in engines)), "")
