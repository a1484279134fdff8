"""Starts, watches and stops the daemons of one run directory, and writes each change into its record."""

from __future__ import annotations

import shutil
import signal as signals
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from howdah.errors import EngineUnavailable, SpecError
from howdah.sandbox import hdfs, process, readiness, record
from howdah.sandbox.conf import EXCLUDED
from howdah.sandbox.hadoop import ADMIN, DaemonRole, Launcher, roles
from howdah.sandbox.install import Java
from howdah.sandbox.process import Process
from howdah.sandbox.record import SandboxRecord
from howdah.spec.values import dataclass

TOOL_LIMIT_S = 60


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


class RunningDaemons:
    """The daemons that a record names; `record` is renewed at each start and stop."""

    def __init__(self, run: Path, known: SandboxRecord) -> None:
        self.run = run
        self.record = known
        self.roles = {role.name: role for role in roles(known.shape, known.ports)}
        java = Java(Path(known.java), known.java_release)
        self._launcher = Launcher(known.shape.hadoop, java, Path(known.jars), run)

    def role(self, name: str) -> DaemonRole:
        if name not in self.roles:
            raise SpecError.at("daemon", f"{name!r} is not one of {', '.join(self.roles)}")
        return self.roles[name]

    def log(self, name: str) -> Path:
        return self.run / "log" / f"{name}.log"

    def alive(self, name: str) -> Process | None:
        """Return the daemon's process if it runs."""
        known = self.record.processes.get(name)
        return known if known and known.alive() else None

    def missing(self) -> list[DaemonRole]:
        return [role for role in self.roles.values() if not self.alive(role.name)]

    def daemon(self, role: DaemonRole) -> Daemon:
        found = self.alive(role.name)
        pid, rss = (found.pid, found.rss_mib()) if found else (None, 0)
        return Daemon(
            role.name, role.title, found is not None, pid, rss, role.address, role.web, str(self.log(role.name))
        )

    def format(self) -> None:
        """Make the NameNodes' directories if they are missing.

        Raises:
            EngineUnavailable: they could not be made; it gives the reason.
        """
        found = self.servers("NameNode")
        directories = [hdfs.name_dir(self.run, role.name) for role in found]
        if not found or (directories[0] / "current").exists():
            return
        arguments = ["-format", "-nonInteractive"]
        self._run_tool("format", found[0].main, arguments, "HDFS can't be formatted", found[0].conf)
        for directory in directories[1:]:  # the second NameNode starts as a copy of the first
            shutil.copytree(directories[0], directory)

    def _run_tool(self, name: str, main: str, arguments: Sequence[str], failure: str, conf: str = "conf") -> None:
        command, environment = self._launcher.tool(main, arguments, conf), self._launcher.environment()
        with self.log(name).open("wb") as log:
            done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=TOOL_LIMIT_S)
        if done.returncode:
            raise EngineUnavailable(f"{failure}:\n{readiness.tail(self.log(name))}")

    def servers(self, title: str) -> list[DaemonRole]:
        """Return the daemons of one kind: ResourceManager, NameNode, DataNode, NodeManager."""
        return [role for role in self.roles.values() if role.title == title]

    def active(self, title: str = "ResourceManager") -> DaemonRole | None:
        """Return the active ResourceManager, or NameNode, if there is one."""
        is_active = readiness.SERVES[title]
        return next((role for role in self.servers(title) if is_active(role.web)), None)

    def set_ha_state(self, role: DaemonRole, state: str) -> None:
        """Make one of two ResourceManagers or NameNodes `Active` or `Standby`, and return when it is."""
        forced = ["--forceactive"] if state == "Active" else []  # otherwise the tool asks the other one, dead or not
        arguments = [f"-transitionTo{state}", *forced, role.name]
        self._run_tool("admin", ADMIN[role.title], arguments, f"{role.name} does not become {state.lower()}")

    def fail_over(self, title: str, signal: int = 0) -> DaemonRole:
        """End the active server of a kind, if any, by `signal`, or put it on standby; make the other one active."""
        old = self.active(title)
        others = [role for role in self.servers(title) if role != old and self.alive(role.name)]
        if not others:
            raise EngineUnavailable(f"no other {title} of this sandbox runs")
        if old and signal:
            self.stop([old.name], signal)
        elif old:
            self.set_ha_state(old, "Standby")
        self.set_ha_state(others[0], "Active")
        return others[0]

    def exclude(self, nodes: Sequence[DaemonRole], within_s: int) -> None:
        """Decommission these NodeManagers and no others: gracefully within `within_s`, or at once if that is 0."""
        hosts = (role.address.rpartition(":")[0] for role in nodes)
        (self.run / EXCLUDED).write_text("".join(f"{host}\n" for host in hosts))
        graceful = ["-g", str(within_s), "-server"] if within_s else []
        failure = "the ResourceManager does not read its excluded nodes"
        self._run_tool("admin", ADMIN["ResourceManager"], ["-refreshNodes", *graceful], failure)

    def start_all(self) -> None:
        """Start the missing daemons and wait until jobs can be submitted; stop all after an error."""
        try:
            self.format()
            for role in self.missing():
                self.spawn(role)
            self.wait_ready()
        except BaseException:  # also Ctrl-C: half a sandbox is of no use
            self.stop_all()
            raise

    def spawn(self, role: DaemonRole) -> None:
        command, environment = self._launcher.command(role), self._launcher.environment()
        self._note(role.name, process.spawn(command, environment, self.log(role.name)))

    def _note(self, name: str, running: Process | None) -> None:
        self.record = self.record.with_process(name, running)
        record.save(self.run, self.record)

    def stop(self, names: Sequence[str], number: int = signals.SIGTERM) -> None:
        """Signal these daemons together and wait until they have ended; KILL them after process.TERM_LIMIT_S."""
        process.stop(filter(None, map(self.alive, names)), number)
        for name in names:
            self._note(name, None)

    def stop_all(self) -> int:
        """Stop NodeManagers first, while HDFS still takes their logs; return how many containers a killed one left."""
        self.stop([name for name in self.roles if name.startswith("nm")])
        self.stop([name for name in self.roles if not name.startswith("nm")])
        # YARN names the node's directories in the environment of every container.
        left = process.with_variable_below("LOCAL_DIRS", self.run)
        process.stop(left)
        return len(left)

    def wait_ready(self) -> None:
        """Return when files can be written and jobs submitted.

        Raises:
            EngineUnavailable: a daemon ended, or is not ready in time.
        """
        self.wait_listening(self.roles.values())
        for title in ADMIN:
            if len(self.servers(title)) > 1 and not self.active(title):
                self.set_ha_state(self.servers(title)[0], "Active")
        if self.servers("NameNode"):
            self._wait_hdfs()
        self.wait_nodes(self.record.shape.nodes)

    def _wait_hdfs(self) -> None:
        webs, data_nodes = [role.web for role in self.servers("NameNode")], len(self.servers("DataNode"))
        active = [""]

        def ready() -> bool:
            active[0] = next(filter(readiness.serves_names, webs), "")
            return bool(active[0]) and readiness.hdfs_is_writable(active[0], data_nodes)

        self.wait("HDFS", ready)
        if not self.record.shape.secure:  # with Kerberos a ticket is needed, which the sandbox does not have
            self.wait("directories for all users in HDFS", lambda: readiness.open_to_everyone(active[0]))

    def wait_listening(self, wanted: Iterable[DaemonRole]) -> None:
        addresses = [address for role in wanted for address in role.listens]
        self.wait(f"one of {', '.join(addresses)}", lambda: all(map(readiness.accepts_connections, addresses)))

    def wait_nodes(self, count: int) -> None:
        """Return when the ResourceManager counts exactly `count` NodeManagers as running."""
        webs = [role.web for role in self.servers("ResourceManager")]
        living = [(role.address, self.alive(role.name)) for role in self.servers("NodeManager")]
        begun = {address: found.begun() for address, found in living if found}

        def counted() -> bool:
            return count in (readiness.active_nodes(web, begun) for web in webs if readiness.is_active(web))

        self.wait(f"YARN with {count} nodes", counted)

    def wait(self, what: str, ready: Callable[[], bool]) -> None:
        watched = {name: (running, self.log(name)) for name, running in self.record.processes.items()}
        readiness.wait(what, ready, watched)
