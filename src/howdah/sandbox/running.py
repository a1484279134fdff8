"""The daemons of one run dir: started, watched and stopped, with the record on disk renewed at every change."""

from __future__ import annotations

import signal as signals
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import EngineUnavailable, SpecError
from howdah.sandbox import process, readiness, record
from howdah.sandbox.hadoop import RM_ADMIN, Launcher, Role, roles
from howdah.sandbox.install import Java
from howdah.sandbox.process import Process
from howdah.sandbox.record import Record

TOOL_LIMIT_S = 60


@dataclass(frozen=True)
class Daemon:
    """One line of `status`; `pid` is None and `rss_mib` 0 when it is down. Addresses are host:port."""

    name: str
    title: str
    up: bool
    pid: int | None
    rss_mib: int
    address: str
    web: str
    log: str


class Running:
    """What a record says runs; `record` follows each start and stop."""

    def __init__(self, run: Path, known: Record) -> None:
        self.run = run
        self.record = known
        self.roles = {role.name: role for role in roles(known.shape, known.ports)}
        java = Java(Path(known.java), known.java_release)
        self._launcher = Launcher(known.shape.hadoop, java, Path(known.jars), run)

    def role(self, name: str) -> Role:
        if name not in self.roles:
            raise SpecError.at("daemon", f"{name!r} is not one of {', '.join(self.roles)}")
        return self.roles[name]

    def log(self, name: str) -> Path:
        return self.run / "log" / f"{name}.log"

    def alive(self, name: str) -> Process | None:
        """The daemon's process if it runs."""
        known = self.record.processes.get(name)
        return known if known and known.alive() else None

    def missing(self) -> list[Role]:
        return [role for role in self.roles.values() if not self.alive(role.name)]

    def daemon(self, role: Role) -> Daemon:
        found = self.alive(role.name)
        pid, rss = (found.pid, found.rss_mib()) if found else (None, 0)
        return Daemon(
            role.name, role.title, found is not None, pid, rss, role.address, role.web, str(self.log(role.name))
        )

    def format(self) -> None:
        """Make the NameNode's folder if HDFS is wanted and has none; EngineUnavailable with the reason if it can't."""
        if "nn" not in self.roles or (self.run / "dfs" / "name" / "current").exists():
            return
        self._tool("format", self.role("nn").main, ["-format", "-nonInteractive"], "HDFS can't be formatted")

    def _tool(self, name: str, main: str, arguments: Sequence[str], failure: str) -> None:
        command, environment = self._launcher.tool(main, arguments), self._launcher.environment()
        with self.log(name).open("wb") as log:
            done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=TOOL_LIMIT_S)
        if done.returncode:
            raise EngineUnavailable(f"{failure}:\n{readiness.tail(self.log(name))}")

    def resource_managers(self) -> list[Role]:
        return [role for role in self.roles.values() if role.title == "ResourceManager"]

    def active(self) -> Role | None:
        """The ResourceManager that serves, if one does."""
        return next((role for role in self.resource_managers() if readiness.is_active(role.web)), None)

    def turn(self, role: Role, state: str) -> None:
        """Make one of two ResourceManagers `Active` or `Standby`; it has become so on return."""
        forced = ["--forceactive"] if state == "Active" else []  # else it would ask the other, dead or not
        arguments = [f"-transitionTo{state}", *forced, role.name]
        self._tool("rmadmin", RM_ADMIN, arguments, f"{role.name} does not become {state.lower()}")

    def spawn(self, role: Role) -> None:
        command, environment = self._launcher.command(role), self._launcher.environment()
        self._note(role.name, process.spawn(command, environment, self.log(role.name)))

    def _note(self, name: str, running: Process | None) -> None:
        self.record = self.record.with_process(name, running)
        record.save(self.run, self.record)

    def stop(self, names: Sequence[str], number: int = signals.SIGTERM) -> None:
        """Signal these together and wait for their end; killed when they take longer than process.TERM_LIMIT_S."""
        found = [running for running in map(self.alive, names) if running]
        process.stop(found, number)
        for name in names:
            self._note(name, None)

    def stop_all(self) -> int:
        """NodeManagers first, while HDFS takes their logs; returns how many containers a killed one had left."""
        self.stop([name for name in self.roles if name.startswith("nm")])
        self.stop([name for name in self.roles if not name.startswith("nm")])
        # YARN names the node's folders in every container's environment.
        left = process.with_variable_below("LOCAL_DIRS", self.run)
        process.stop(left)
        return len(left)

    def wait_ready(self) -> None:
        """Return when files can be written and jobs submitted; raises EngineUnavailable."""
        self.wait_listening(self.roles.values())
        if len(self.resource_managers()) > 1 and not self.active():
            self.turn(self.resource_managers()[0], "Active")
        if "nn" in self.roles:
            web = self.roles["nn"].web
            self.wait("HDFS", lambda: readiness.hdfs_is_writable(web))
            readiness.open_to_everyone(web)
        self.wait_nodes(self.record.shape.nodes)

    def wait_listening(self, wanted: Iterable[Role]) -> None:
        addresses = [address for role in wanted for address in role.listens]
        self.wait(f"one of {', '.join(addresses)}", lambda: all(map(readiness.accepts, addresses)))

    def wait_nodes(self, count: int) -> None:
        """Return when the ResourceManager counts exactly `count` NodeManagers as running."""
        webs = [role.web for role in self.resource_managers()]
        wanted = f"YARN with {count} nodes"
        self.wait(wanted, lambda: count in (readiness.active_nodes(web) for web in webs if readiness.is_active(web)))

    def wait(self, what: str, ready: Callable[[], bool]) -> None:
        watched = {name: (running, self.log(name)) for name, running in self.record.processes.items()}
        readiness.wait(what, ready, watched)
