"""The sandbox of Hadoop: ResourceManagers, NodeManagers, NameNodes and DataNodes on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from howdah.localfiles.own_directories import state_directory
from howdah.sandbox import addresses, conf, install
from howdah.sandbox.daemon_sandbox import DaemonSandbox
from howdah.sandbox.hadoop_daemons import HadoopDaemons
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.shape import Shape, validate
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice


def default_run_dir() -> Path:
    return state_directory(os.environ) / "sandbox"


def current() -> Sandbox | None:
    """Return the sandbox of the default run directory, if all its daemons are up."""
    sandbox = Sandbox.open()
    return sandbox if sandbox and sandbox.is_up() else None


class Sandbox(DaemonSandbox[HadoopDaemons]):
    """A Hadoop of `nodes` NodeManagers, `resourcemanagers` and (with `hdfs`) `namenodes` and `datanodes`.

    `nodes=0, hdfs=False` is a ResourceManager alone, which is called rm. Two ResourceManagers, rm1 and rm2, have high
    availability; so have two NameNodes, nn1 and nn2. One NameNode is called nn, one DataNode dn; of two DataNodes, dn1
    and dn2, each has a copy of each block. A NodeManager that is silent for `expiry_s` is lost.
    `properties` override Hadoop's, by file: {"yarn-site": {"yarn.…": "…"}}. `cache` is the directory for the jars.
    """

    def __init__(
        self,
        run_dir: Path | None = None,
        hadoop: str = install.DEFAULT_HADOOP,
        nodes: int = 3,
        properties: Mapping[str, Mapping[str, str]] | None = None,
        *,
        hdfs: bool = True,
        memory_mib: int = 8192,
        vcores: int = 8,
        gpus: int = 4,
        expiry_s: int = 15,
        resourcemanagers: int = 1,
        namenodes: int = 1,
        datanodes: int = 1,
        cache: Path | None = None,
    ) -> None:
        overrides = {file: dict(values) for file, values in (properties or {}).items()}
        version = install.resolve_version(hadoop)
        sizes = (memory_mib, vcores, gpus, expiry_s)
        shape = Shape(version, nodes, hdfs, *sizes, overrides, resourcemanagers, namenodes, datanodes)
        super().__init__(run_dir or default_run_dir(), validate(shape))
        self.cache = cache or local_directory()

    @classmethod
    def open(cls, run_dir: Path | None = None) -> Sandbox | None:
        """Return the sandbox in a run directory (by default the default one), up or down; None if there is none."""
        known = HadoopRecord.load(run_dir or default_run_dir())
        return cls(run_dir, **vars(known.shape)) if known else None

    @property
    def conf_dir(self) -> Path:
        """Return the client configuration of this Hadoop."""
        return self.run_dir / "conf"

    def env(self) -> dict[str, str]:
        """Return the variables that a client's environment needs."""
        return {"HADOOP_CONF_DIR": str(self.conf_dir)}

    def _summary(self, daemons: HadoopDaemons) -> str:
        web = (daemons.active() or daemons.servers("ResourceManager")[0]).web
        return f"Hadoop {self.shape.hadoop}, {self.shape.nodes} NodeManagers, pages at http://{web}"

    def start(self, name: str) -> None:
        """Start one daemon, unless it runs, and return when it listens."""
        daemons = self._loaded()
        role = daemons.role(name)
        if not daemons.alive(name):
            daemons.spawn(role)
            daemons.wait_listening([role])

    def wait_nodes(self, count: int) -> None:
        """Return when the ResourceManager counts exactly `count` NodeManagers as running.

        Raises:
            EngineUnavailable: it does not do so in time.
        """
        self._loaded().wait_nodes(count)

    def decommission(self, name: str, within_s: int) -> None:
        """Decommission a NodeManager gracefully: it ends when its containers have ended, or after `within_s`. `start`
        after `recommission` brings it back."""
        daemons = self._loaded()
        daemons.exclude([daemons.role(name)], within_s)

    def recommission(self) -> None:
        """Exclude no NodeManager any more. A NodeManager that is being decommissioned stays so."""
        self._loaded().exclude([], 0)

    def active(self, title: str = "ResourceManager") -> str:
        """Return the name of the active ResourceManager or NameNode; "" if none is active."""
        found = self._loaded().active(title)
        return found.name if found else ""

    def standby(self, name: str) -> None:
        """Put one of two ResourceManagers or NameNodes on standby."""
        daemons = self._loaded()
        daemons.set_ha_state(daemons.role(name), "Standby")

    def failover(self, signal: int = 0, title: str = "ResourceManager") -> str:
        """End the active ResourceManager or NameNode, if any, by `signal`, or put it on standby. Return the name of the
        other one, which takes over.

        Raises:
            EngineUnavailable: no other one runs.
        """
        return self._loaded().fail_over(title, signal).name

    def _load(self) -> HadoopDaemons | None:
        record = HadoopRecord.load(self.run_dir)
        return HadoopDaemons(self.run_dir, record) if record else None

    def _load_kept(self) -> HadoopDaemons | None:
        kept = super()._load_kept()
        known = kept or self._load()
        if known and known.record.shape.hadoop != self.shape.hadoop:  # another version does not read its data
            self._require_shape(known)
        return kept

    def _command(self, verb: str) -> str:
        """Return a command; `down` without an option would stop sandboxes of all kinds."""
        return f"{super()._command(verb)} --hadoop" if verb == "down" else super()._command(verb)

    def _prepare(self, progress: Notice) -> HadoopDaemons:
        java = install.require_java(self.shape.hadoop, progress)
        jars = install.jars(self.shape.hadoop, java, self.cache, progress)
        ports = addresses.choose(self.shape)
        shutil.rmtree(self.run_dir / "log", ignore_errors=True)
        for directory in ("log", "tmp"):
            (self.run_dir / directory).mkdir(exist_ok=True)
        conf.write(self.run_dir, self.shape, ports)
        record = HadoopRecord(self.shape, ports, str(java.home), java.release, str(jars))
        record.save(self.run_dir)
        return HadoopDaemons(self.run_dir, record)
