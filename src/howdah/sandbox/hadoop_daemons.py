"""Starts and stops the daemons of one Hadoop, and lets its servers take over from each other."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from howdah.errors import EngineUnavailable
from howdah.sandbox import hdfs, process, readiness
from howdah.sandbox.conf import EXCLUDED
from howdah.sandbox.daemons import Daemons
from howdah.sandbox.hadoop import ADMIN, HadoopRole, Launcher, roles
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.install import Java
from howdah.storage.progress import Notice, no_notice


class HadoopDaemons(Daemons[HadoopRole, HadoopRecord]):
    """Starts and stops the daemons of one Hadoop, and lets its servers take over from each other."""

    def __init__(self, run: Path, record: HadoopRecord) -> None:
        super().__init__(run, record, roles(record.shape, record.ports))
        java = Java(Path(record.java), record.java_release)
        self._launcher = Launcher(record.shape.hadoop, java, Path(record.jars), run)

    def _command(self, role: HadoopRole) -> tuple[list[str], Mapping[str, str]]:
        return self._launcher.command(role), self._launcher.environment()

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
        limit_s = readiness.READY_LIMIT_S
        try:
            with self.log(name).open("wb") as log:
                done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=limit_s)
        except subprocess.TimeoutExpired:
            why = f"{failure}: not within {limit_s:.0f} s:\n{readiness.tail(self.log(name))}"
            raise EngineUnavailable(why) from None
        if done.returncode:
            raise EngineUnavailable(f"{failure}:\n{readiness.tail(self.log(name))}")

    def servers(self, title: str) -> list[HadoopRole]:
        """Return the daemons of one kind: ResourceManager, NameNode, DataNode, NodeManager."""
        return [role for role in self.roles.values() if role.title == title]

    def active(self, title: str = "ResourceManager") -> HadoopRole | None:
        """Return the active ResourceManager, or NameNode, if there is one."""
        is_active = readiness.SERVES[title]
        return next((role for role in self.servers(title) if is_active(role.web)), None)

    def set_ha_state(self, role: HadoopRole, state: str) -> None:
        """Make one of two ResourceManagers or NameNodes `Active` or `Standby`, and return when it is."""
        forced = ["--forceactive"] if state == "Active" else []  # otherwise the tool asks the other one, dead or not
        arguments = [f"-transitionTo{state}", *forced, role.name]
        self._run_tool("admin", ADMIN[role.title], arguments, f"{role.name} does not become {state.lower()}")

    def fail_over(self, title: str, signal: int = 0) -> HadoopRole:
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

    def exclude(self, nodes: Sequence[HadoopRole], within_s: int) -> None:
        """Decommission these NodeManagers and no others: gracefully within `within_s`, or at once if that is 0."""
        hosts = (role.address.rpartition(":")[0] for role in nodes)
        (self.run / EXCLUDED).write_text("".join(f"{host}\n" for host in hosts))
        graceful = ["-g", str(within_s), "-server"] if within_s else []
        failure = "the ResourceManager does not read its excluded nodes"
        self._run_tool("admin", ADMIN["ResourceManager"], ["-refreshNodes", *graceful], failure)

    def _start_missing(self) -> None:
        self.format()
        for role in self.missing():
            self.spawn(role)
        self.wait_ready()

    def stop_all(self, progress: Notice = no_notice) -> None:
        """Stop NodeManagers first, while HDFS still takes their logs, and the containers that a killed one left."""
        self.stop([name for name in self.roles if name.startswith("nm")])
        self.stop([name for name in self.roles if not name.startswith("nm")])
        # YARN names the node's directories in the environment of every container.
        left = process.with_variable_below("LOCAL_DIRS", self.run)
        process.stop(left)
        if left:
            progress(f"killed {len(left)} containers that a killed NodeManager had left")

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

    def wait_nodes(self, count: int) -> None:
        """Return when the ResourceManager counts exactly `count` NodeManagers as running."""
        webs = [role.web for role in self.servers("ResourceManager")]
        living = [(role.address, self.alive(role.name)) for role in self.servers("NodeManager")]
        begun = {address: found.begun() for address, found in living if found}

        def counted() -> bool:
            return count in (readiness.active_nodes(web, begun) for web in webs if readiness.is_active(web))

        self.wait(f"YARN with {count} nodes", counted)
