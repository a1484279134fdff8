"""The sandbox of Spark: a standalone master and some workers as processes of this machine, on loopback only.

Programs that connect to them must know the secret, which is in a file that only this user can read
(`spark.authenticate`).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal as signals
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from howdah.errors import SpecError
from howdah.localfiles.own_directories import state_directory
from howdah.sandbox import addresses, install, spark_install
from howdah.sandbox.conf import node_host
from howdah.sandbox.daemon_sandbox import DaemonSandbox
from howdah.sandbox.daemons import MARK, DaemonRole, Daemons
from howdah.sandbox.process import Process
from howdah.sandbox.record import Record
from howdah.sandbox.sizes import size_mistakes
from howdah.spec.values import dataclass
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice, no_notice

MAX_NODES = 20
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "PATH")
_CLASS = "org.apache.spark.deploy"
_GPUS_SCRIPT = '#!/bin/sh\necho \'{{"name": "gpu", "addresses": [{addresses}]}}\'\n'
_DAEMON_MEMORY = "256m"
_JAVA_OPTIONS = " ".join(install.STARTS_FAST)
_CALL_LIMIT_S = 5.0


def default_run_dir() -> Path:
    return state_directory(os.environ) / "sandbox-spark"


@dataclass(frozen=True)
class SparkShape:
    """The specification by the user; two sandboxes of one shape differ only in directory and ports."""

    nodes: int = 2
    """The number of workers, named worker1, worker2 and so on."""
    memory_mib: int = 8192
    """The memory that each worker offers."""
    vcores: int = 8
    """The cores that each worker offers."""
    gpus: int = 4
    """The GPUs that each worker offers; they are counted, not real."""

    @property
    def worker_names(self) -> list[str]:
        """Return the names of the workers: worker1, worker2 and so on."""
        return [f"worker{number}" for number in range(1, self.nodes + 1)]


@dataclass(frozen=True)
class SparkRecord(Record):
    """The content of the sandbox.json of a Spark sandbox."""

    shape: SparkShape
    """What the user asked for."""
    ports: tuple[int, ...]
    """The ports of the master, of its pages, then of each worker and of the worker's pages."""
    home: str
    """SPARK_HOME."""
    java_home: str
    """JAVA_HOME."""
    processes: Mapping[str, Process] = field(default_factory=dict)
    """The daemons that were started, by name."""

    @classmethod
    def _from_document(cls, known: dict[str, Any], processes: Mapping[str, Process]) -> SparkRecord:
        shape, ports = SparkShape(**known["shape"]), tuple(known["ports"])
        return cls(shape, ports, known["home"], known["java_home"], processes)

    def _document(self, run: Path) -> dict[str, Any]:
        return {"ports": self.ports, "home": self.home, "java_home": self.java_home}


class SparkSandbox(DaemonSandbox["SparkDaemons"]):
    """Runs a standalone Spark of some workers on this machine."""

    OPTION = "--spark"

    def __init__(
        self, run_dir: Path | None = None, shape: SparkShape | None = None, *, cache: Path | None = None
    ) -> None:
        super().__init__(run_dir or default_run_dir(), _validate(shape or SparkShape()))
        self.cache = cache or local_directory()

    @classmethod
    def open(cls, run_dir: Path | None = None) -> SparkSandbox | None:
        """Return the sandbox in a run directory (by default the default one), up or down; None if there is none."""
        known = SparkRecord.load(run_dir or default_run_dir())
        return cls(run_dir, known.shape) if known else None

    @property
    def version(self) -> str:
        """Return the version of Spark."""
        return spark_install.VERSION

    @property
    def master_url(self) -> str:
        """Return the address for `spark-submit --master`."""
        return self._loaded().master_url

    @property
    def home(self) -> Path:
        """Return Spark's own directory, SPARK_HOME."""
        return Path(self._loaded().record.home)

    def env(self) -> dict[str, str]:
        """Return the variables that a client's environment needs."""
        return {"SPARK_HOME": str(self.home), "SPARK_CONF_DIR": str(self.run_dir / "conf")}

    def try_command(self) -> str:
        """Return the command that runs Spark's own first example here."""
        example = self.home / "examples" / "src" / "main" / "python" / "pi.py"
        submit = self.home / "bin" / "spark-submit"
        return f"SPARK_CONF_DIR={self.run_dir / 'conf'} {submit} --master {self.master_url} {example} 10"

    def _load(self) -> SparkDaemons | None:
        record = SparkRecord.load(self.run_dir)
        return SparkDaemons(self.run_dir, record) if record else None

    def _summary(self, daemons: SparkDaemons) -> str:
        return f"Spark {self.version}, {self.shape.nodes} workers, pages at http://{daemons.role('master').web}"

    def _prepare(self, progress: Notice) -> SparkDaemons:
        java = install.require_java("3.5.0", progress, f"Spark {self.version}")
        home = spark_install.spark_home(self.cache, progress)
        known = SparkRecord.load(self.run_dir)
        ports = known.ports if known else tuple(addresses.free_ports(2 + 2 * self.shape.nodes))
        for name in ("log", "conf", "tmp", "work"):
            shutil.rmtree(self.run_dir / name, ignore_errors=True)
            (self.run_dir / name).mkdir(mode=0o700)
        record = SparkRecord(self.shape, ports, str(home), str(java.home))
        daemons = SparkDaemons(self.run_dir, record)
        _write_configuration(self.run_dir / "conf", daemons, self.shape)
        record.save(self.run_dir)
        return daemons

    def start(self, name: str) -> None:
        """Start one daemon, unless it runs, and return when it listens and all workers that run are counted."""
        daemons = self._loaded()
        if not daemons.alive(name):
            daemons.spawn(daemons.role(name))
        daemons.wait_ready()

    def stop(self, name: str, signal: int = signals.SIGTERM) -> None:
        """Signal one daemon and wait until it has ended; processes that a worker has started end with it."""
        super().stop(name, signal)
        self._loaded().kill_processes_of(name)


def _validate(shape: SparkShape) -> SparkShape:
    minimum = {"nodes": 1, "memory_mib": 1024, "vcores": 1, "gpus": 0}
    wrong = size_mistakes(shape, minimum, {"nodes": MAX_NODES})
    if wrong:
        raise SpecError(wrong)
    return shape


def _write_configuration(directory: Path, daemons: SparkDaemons, shape: SparkShape) -> None:
    """Write the files that daemons and clients read when SPARK_CONF_DIR is this directory."""
    script = directory / "gpus.sh"
    script.write_text(_GPUS_SCRIPT.format(addresses=", ".join(f'"{number}"' for number in range(shape.gpus))))
    script.chmod(0o700)
    properties = {
        "spark.master": daemons.master_url,
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.network.crypto.enabled": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.killEnabled": "false",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
    }
    if shape.gpus:
        properties["spark.worker.resource.gpu.amount"] = str(shape.gpus)
        properties["spark.worker.resource.gpu.discoveryScript"] = str(script)
    defaults = directory / "spark-defaults.conf"
    defaults.touch(0o600)  # before the secret is in it
    defaults.write_text("".join(f"{name} {value}\n" for name, value in properties.items()))
    # The pages of drivers and workers listen where SPARK_LOCAL_IP says.
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": daemons.record.java_home}
    environment["PYSPARK_PYTHON"] = sys.executable  # as a property it would be stronger than the user's variable
    lines = (f"export {name}=${{{name}:-{value}}}\n" for name, value in environment.items())  # daemons have their own
    (directory / "spark-env.sh").write_text("".join(lines))


class SparkDaemons(Daemons[DaemonRole, SparkRecord]):
    """Starts and stops the daemons of one Spark, with the processes that they have started."""

    def __init__(self, run: Path, record: SparkRecord) -> None:
        roles = []
        for number, name in enumerate(["master", *record.shape.worker_names]):
            host = node_host(number) if number else "127.0.0.1"
            own, web = (f"{host}:{port}" for port in record.ports[2 * number : 2 * number + 2])
            roles.append(DaemonRole(name, "Worker" if number else "Master", own, web))
        super().__init__(run, record, roles)

    @property
    def master_url(self) -> str:
        """Return the address of the master."""
        return f"spark://{self.role('master').address}"

    def _command(self, role: DaemonRole) -> tuple[list[str], Mapping[str, str]]:
        shape, (host, _, port) = self.record.shape, role.address.rpartition(":")
        options = ["--host", host, "--port", port, "--webui-port", role.web.rpartition(":")[2]]
        if role.title == "Worker":
            sizes = ["--cores", str(shape.vcores), "--memory", f"{shape.memory_mib}m"]
            options += [*sizes, "--work-dir", f"{self.run}/work/{role.name}", self.master_url]
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        own = {
            "SPARK_HOME": self.record.home,
            "SPARK_CONF_DIR": f"{self.run}/conf",
            "SPARK_LOCAL_DIRS": str(self.run / "tmp"),
            "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
            "SPARK_DAEMON_JAVA_OPTS": _JAVA_OPTIONS,
            "SPARK_LOCAL_IP": host,
            "JAVA_HOME": self.record.java_home,
            MARK: f"{self.run}/{role.name}",
        }
        program = f"{self.record.home}/bin/spark-class"
        return [program, f"{_CLASS}.{role.title.lower()}.{role.title}", *options], {**kept, **own}

    def _start_missing(self) -> None:
        for names in (["master"], self.record.shape.worker_names):
            roles = [self.roles[name] for name in names if not self.alive(name)]
            for role in roles:
                self.spawn(role)
            self.wait_listening(roles)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return when the master counts exactly the running workers as alive."""
        self.wait_listening(role for role in self.roles.values() if self.alive(role.name))
        living = {self.roles[name].address for name in self.record.shape.worker_names if self.alive(name)}
        if self.alive("master"):
            self.wait(f"Spark with {len(living)} workers", lambda: self._alive_workers() == living)

    def _alive_workers(self) -> set[str]:
        """Return the addresses of the workers that the master counts as alive."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with contextlib.suppress(OSError, ValueError, KeyError):
            with opener.open(f"http://{self.role('master').web}/json/", timeout=_CALL_LIMIT_S) as answer:
                workers = json.load(answer)["workers"]
            return {f"{each['host']}:{each['port']}" for each in workers if each["state"] == "ALIVE"}
        return set()

    def stop_all(self, progress: Notice = no_notice) -> None:
        """Stop the workers before the master, and all processes that they have started."""
        for names in (self.record.shape.worker_names, ["master"]):
            self.stop(names)
        self.kill_processes_of("")
