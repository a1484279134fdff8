"""Starts, watches and stops the daemons of one run directory; every change is recorded there."""

from __future__ import annotations

import signal as signals
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from howdah.errors import SpecError
from howdah.sandbox import process, readiness
from howdah.sandbox.process import Process
from howdah.sandbox.record import Record
from howdah.spec.values import dataclass
from howdah.storage.progress import Notice, no_notice

MARK = "HOWDAH_SANDBOX"
"""The variable of the daemons, and of the programs that they start, that names the run directory and the daemon."""


@dataclass(frozen=True)
class DaemonRole:
    """Describes one daemon; addresses are host:port."""

    name: str
    title: str
    address: str = ""
    web: str = ""
    more: tuple[str, ...] = ()

    @property
    def listens(self) -> tuple[str, ...]:
        """Return each address on which the ready daemon listens; a ResourceManager's pages come before its RPC."""
        return tuple(filter(None, (self.address, self.web, *self.more)))


AnyRole = TypeVar("AnyRole", bound=DaemonRole)
AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True)
class Daemon:
    """One line of `howdah sandbox status`; addresses are host:port."""

    name: str
    title: str
    up: bool
    pid: int | None
    """The process id; None when the daemon is down."""
    rss_mib: int
    address: str
    web: str
    log: str


class Daemons(ABC, Generic[AnyRole, AnyRecord]):
    """The daemons that a record names, in the order in which they start; `record` is renewed at each start and stop."""

    def __init__(self, run: Path, record: AnyRecord, roles: Iterable[AnyRole]) -> None:
        self.run, self.record = run, record
        self.roles = {role.name: role for role in roles}

    @property
    def processes(self) -> Mapping[str, Process]:
        """Return the recorded processes by the daemons' names."""
        return self.record.processes

    def _note(self, name: str, running: Process | None) -> None:
        """Record that the daemon is this process, or that it does not run."""
        self.record = self.record.with_process(name, running)
        self.record.save(self.run)

    @abstractmethod
    def _command(self, role: AnyRole) -> tuple[list[str], Mapping[str, str]]:
        """Return the command line and the environment of a daemon."""

    def start_all(self) -> None:
        """Start the missing daemons and wait until jobs can be submitted; stop all after an error."""
        try:
            self._start_missing()
        except BaseException:  # also Ctrl-C: half a sandbox is of no use
            self.stop_all()
            raise

    @abstractmethod
    def _start_missing(self) -> None:
        """Start the missing daemons and wait until jobs can be submitted."""

    @abstractmethod
    def stop_all(self, progress: Notice = no_notice) -> None:
        """Stop the daemons and the processes that they have started."""

    def role(self, name: str) -> AnyRole:
        if name not in self.roles:
            raise SpecError.at("daemon", f"{name!r} is not one of {', '.join(self.roles)}")
        return self.roles[name]

    def log(self, name: str) -> Path:
        return self.run / "log" / f"{name}.log"

    def alive(self, name: str) -> Process | None:
        """Return the daemon's process if it runs."""
        known = self.processes.get(name)
        return known if known and known.alive() else None

    def missing(self) -> list[AnyRole]:
        return [role for role in self.roles.values() if not self.alive(role.name)]

    def daemon(self, role: DaemonRole) -> Daemon:
        found = self.alive(role.name)
        pid, rss = (found.pid, found.rss_mib()) if found else (None, 0)
        return Daemon(
            role.name, role.title, found is not None, pid, rss, role.address, role.web, str(self.log(role.name))
        )

    def spawn(self, role: AnyRole) -> None:
        command, environment = self._command(role)
        self._note(role.name, process.spawn(command, environment, self.log(role.name)))

    def stop(self, names: Sequence[str], number: int = signals.SIGTERM) -> None:
        """Signal these daemons together and wait until they have ended; KILL them after process.TERM_LIMIT_S."""
        process.stop(filter(None, map(self.alive, names)), number)
        for name in names:
            self._note(name, None)

    def kill_processes_of(self, name: str) -> None:
        """KILL the processes that a daemon with `MARK` has started; "" means all daemons."""
        known = set(self.processes.values())
        left = process.with_variables({MARK: f"{self.run}/{name}" + ("\0" if name else "")})
        process.stop([each for each in left if each not in known], signals.SIGKILL)

    def wait_listening(self, wanted: Iterable[DaemonRole]) -> None:
        addresses = [address for role in wanted for address in role.listens]
        self.wait(f"one of {', '.join(addresses)}", lambda: all(map(readiness.accepts_connections, addresses)))

    def wait(self, what: str, ready: Callable[[], bool]) -> None:
        watched = {name: (running, self.log(name)) for name, running in self.processes.items()}
        readiness.wait(what, ready, watched)
