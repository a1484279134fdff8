"""The sandbox: one Hadoop in one run directory, whose record every `Sandbox` of that directory reads and changes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal as signals
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from howdah.config.paths import state_directory
from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.sandbox import addresses, conf, install, record
from howdah.sandbox.record import SandboxRecord
from howdah.sandbox.running import Daemon, RunningDaemons
from howdah.sandbox.shape import Shape, describe_difference, validate
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice, no_notice


def default_run_dir() -> Path:
    return state_directory(os.environ) / "sandbox"


def current() -> Sandbox | None:
    """Return the sandbox of the default run directory, if all its daemons are up."""
    sandbox = Sandbox.open()
    return sandbox if sandbox and sandbox.is_up() else None


class Sandbox:
    """A Hadoop of `nodes` NodeManagers, `resourcemanagers` and (with `hdfs`) `namenodes` and `datanodes`.

    `nodes=0, hdfs=False` is a ResourceManager alone, which is called rm. Two ResourceManagers, rm1 and rm2, have high
    availability; so have two NameNodes, nn1 and nn2. One NameNode is called nn, one DataNode dn; of two DataNodes, dn1
    and dn2, each has a copy of each block. A NodeManager that is silent for `expiry_s` is lost.
    `properties` override Hadoop's, by file: {"yarn-site": {"yarn.…": "…"}}. `cache` is the directory for the jars.
    As a context manager the sandbox is up inside the block, and leaves nothing behind.
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
        self.shape = validate(shape)
        self.run_dir = (run_dir or default_run_dir()).absolute()
        self.cache = cache or local_directory()

    @classmethod
    def open(cls, run_dir: Path | None = None) -> Sandbox | None:
        """Return the sandbox in a run directory (by default the default one), up or down; None if there is none."""
        known = record.load(run_dir or default_run_dir())
        return cls(run_dir, **vars(known.shape)) if known else None

    def __enter__(self) -> Sandbox:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def conf_dir(self) -> Path:
        """Return the client configuration of this Hadoop."""
        return self.run_dir / "conf"

    def env(self) -> dict[str, str]:
        """Return the variables that a client's environment needs."""
        return {"HADOOP_CONF_DIR": str(self.conf_dir)}

    def is_up(self) -> bool:
        """Return whether all daemons run."""
        daemons = self.status()
        return bool(daemons) and all(daemon.up for daemon in daemons)

    def status(self) -> list[Daemon]:
        """Return all daemons in the order in which they start; [] if the run directory holds no sandbox."""
        known = record.load(self.run_dir)
        running = RunningDaemons(self.run_dir, known) if known else None
        return [running.daemon(role) for role in running.roles.values()] if running else []

    def up(self, progress: Notice = no_notice) -> None:
        """Start the daemons that do not run, and return when jobs can be submitted.

        Raises:
            EngineUnavailable: something is missing, or a daemon has ended; all are then stopped, and the logs stay.
            SpecError: the run directory holds a sandbox of another shape.
        """
        begun = time.monotonic()
        with self._lock_run_directory():
            running = RunningDaemons(self.run_dir, self._running_record() or self._prepare(progress))
            missing = running.missing()
            if not missing:
                progress(f"already up: {self._summary(running)}")
                return
            progress(f"starting {', '.join(role.name for role in missing)}")
            running.start_all()
            progress(f"ready in {time.monotonic() - begun:.1f} s: {self._summary(running)}")

    def _summary(self, running: RunningDaemons) -> str:
        web = (running.active() or running.servers("ResourceManager")[0]).web
        return f"Hadoop {self.shape.hadoop}, {self.shape.nodes} NodeManagers, pages at http://{web}"

    def down(self, keep: bool = False, progress: Notice = no_notice) -> None:
        """Stop the sandbox's processes and, unless `keep`, remove its data."""
        if not (self.run_dir / record.NAME).exists():
            return
        with self._lock_run_directory():
            left = self._open_running().stop_all()
            progress("stopped" + (f", with {left} containers that a killed NodeManager had left" if left else ""))
            if not keep:
                shutil.rmtree(self.run_dir)

    def start(self, name: str) -> None:
        """Start one daemon, unless it runs, and return when it listens."""
        running = self._open_running()
        role = running.role(name)
        if not running.alive(name):
            running.spawn(role)
            running.wait_listening([role])

    def stop(self, name: str, signal: int = signals.SIGTERM) -> None:
        """Signal one daemon and wait until it has ended. After SIGKILL a NodeManager's containers run on."""
        running = self._open_running()
        running.stop([running.role(name).name], signal)

    def wait_nodes(self, count: int) -> None:
        """Return when the ResourceManager counts exactly `count` NodeManagers as running.

        Raises:
            EngineUnavailable: it does not do so in time.
        """
        self._open_running().wait_nodes(count)

    def decommission(self, name: str, within_s: int) -> None:
        """Decommission a NodeManager gracefully: it ends when its containers have ended, or after `within_s`. `start`
        after `recommission` brings it back."""
        running = self._open_running()
        running.exclude([running.role(name)], within_s)

    def recommission(self) -> None:
        """Exclude no NodeManager any more. One that is being decommissioned stays."""
        self._open_running().exclude([], 0)

    def active(self, title: str = "ResourceManager") -> str:
        """Return the name of the active ResourceManager or NameNode; "" if none is active."""
        found = self._open_running().active(title)
        return found.name if found else ""

    def standby(self, name: str) -> None:
        """Put one of two ResourceManagers or NameNodes on standby."""
        running = self._open_running()
        running.set_ha_state(running.role(name), "Standby")

    def failover(self, signal: int = 0, title: str = "ResourceManager") -> str:
        """End the active ResourceManager or NameNode, if any, by `signal`, or put it on standby; return the name of the
        other one, which takes over.

        Raises:
            EngineUnavailable: no other one runs.
        """
        return self._open_running().fail_over(title, signal).name

    def _open_running(self) -> RunningDaemons:
        known = record.load(self.run_dir)
        if known is None:
            raise EngineUnavailable(f"no sandbox in {self.run_dir}: `howdah sandbox up` first")
        return RunningDaemons(self.run_dir, known)

    def _running_record(self) -> SandboxRecord | None:
        """Return the record of a sandbox that runs here at least in part.

        Raises:
            SpecError: its shape is another.
        """
        known = record.load(self.run_dir)
        if known is None:
            return None
        running = any(kept.alive() for kept in known.processes.values())
        if known.shape.hadoop != self.shape.hadoop or (running and known.shape != self.shape):
            difference = describe_difference(known.shape, self.shape)
            raise SpecError.at("sandbox", f"{self.run_dir} has {difference}; `howdah sandbox down` first")
        return known if running else None

    def _prepare(self, progress: Notice) -> SandboxRecord:
        java = install.require_java(self.shape.hadoop, progress)
        jars = install.jars(self.shape.hadoop, java, self.cache, progress)
        ports = addresses.choose(self.shape)
        shutil.rmtree(self.run_dir / "log", ignore_errors=True)
        for directory in ("log", "tmp"):
            (self.run_dir / directory).mkdir(exist_ok=True)
        conf.write(self.run_dir, self.shape, ports)
        prepared = SandboxRecord(self.shape, ports, str(java.home), java.release, str(jars))
        record.save(self.run_dir, prepared)
        return prepared

    @contextlib.contextmanager
    def _lock_run_directory(self) -> Iterator[None]:
        """Lock the run directory against a second `up` or `down`; make it first if there is none."""
        _claim(self.run_dir)
        with (self.run_dir / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EngineUnavailable(f"another sandbox command is at work in {self.run_dir}") from None
            yield


def _claim(run_dir: Path) -> None:
    if re.search(r"[\s:,;]", str(run_dir)):
        raise SpecError.at("run_dir", f"{str(run_dir)!r} has a blank, colon, comma or semicolon: Hadoop can't take it")
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        stranger = next((entry for entry in run_dir.iterdir() if not (run_dir / "lock").exists()), None)
    except OSError as error:
        raise StagingError(f"the sandbox can't use {run_dir}: {error.strerror}") from error
    if stranger:
        raise StagingError(f"{run_dir} is not a sandbox's and not empty ({stranger.name}): name another directory")
