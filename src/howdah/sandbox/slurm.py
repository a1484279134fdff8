"""The sandbox of Slurm: munged, slurmctld, several slurmd, and accounting by slurmdbd with MariaDB, on this machine."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import secrets
import shutil
import signal as signals
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from howdah.engines.slurm.commands import NODE_UP
from howdah.errors import EngineUnavailable, StagingError
from howdah.localfiles.own_directories import state_directory
from howdah.sandbox import addresses, install, process, slurm_conf
from howdah.sandbox.daemon_sandbox import DaemonSandbox
from howdah.sandbox.daemons import MARK, DaemonRole, Daemons
from howdah.sandbox.hadoop import NODE_PATH
from howdah.sandbox.process import Process
from howdah.sandbox.record import Record
from howdah.sandbox.slurm_conf import CLUSTER, SlurmPorts, SlurmShape
from howdah.spec.values import dataclass
from howdah.storage.progress import Notice, no_notice

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurmdbd", "slurm-wlm-mysql-plugin", "munge", "mariadb-server-core")
"""The packages of Debian with the programs that are started here. Of MariaDB only the server itself is installed: its
package `mariadb-server` would start one for the whole machine."""
PROGRAMS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sbatch", "sacctmgr")
SQL = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_SQL_DIRECTORIES = (Path("/usr/share/mysql"), Path("/usr/share/mariadb"))
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
CANCEL_LIMIT_S, TOOL_LIMIT_S = 15.0, 60.0
_MAX_SOCKET_PATH = 107  # of a unix socket, in bytes


def default_run_dir() -> Path:
    return state_directory(os.environ) / "sandbox-slurm"


@dataclass(frozen=True)
class SlurmRecord(Record):
    """The content of the sandbox.json of a Slurm sandbox."""

    shape: SlurmShape
    ports: SlurmPorts
    processes: Mapping[str, Process] = field(default_factory=dict)

    @classmethod
    def _from_document(cls, known: dict[str, Any], processes: Mapping[str, Process]) -> SlurmRecord:
        ports = SlurmPorts(**{**known["ports"], "nodes": tuple(known["ports"]["nodes"])})
        return cls(SlurmShape(**known["shape"]), ports, processes)

    def _document(self, run: Path) -> dict[str, Any]:
        return {"slurm_conf": str(run / "slurm.conf"), "ports": asdict(self.ports)}


class SlurmSandbox(DaemonSandbox["SlurmDaemons"]):
    """Runs a Slurm of some nodes, with accounting, on this machine."""

    OPTION = "--slurm"

    def __init__(self, run_dir: Path | None = None, shape: SlurmShape | None = None) -> None:
        super().__init__(run_dir or default_run_dir(), slurm_conf.validate(shape or SlurmShape()))

    @classmethod
    def open(cls, run_dir: Path | None = None) -> SlurmSandbox | None:
        """Return the sandbox in a run directory (by default the default one), up or down; None if there is none."""
        known = SlurmRecord.load(run_dir or default_run_dir())
        return cls(run_dir, known.shape) if known else None

    def env(self) -> dict[str, str]:
        """Return the variables that Slurm's commands need."""
        return {"SLURM_CONF": str(self.run_dir / "slurm.conf")}

    def _load(self) -> SlurmDaemons | None:
        record = SlurmRecord.load(self.run_dir)
        return SlurmDaemons(self.run_dir, record) if record else None

    def _summary(self, daemons: SlurmDaemons) -> str:
        return f"Slurm, {self.shape.nodes} nodes, partitions {', '.join(slurm_conf.PARTITIONS)}"

    def _prepare(self, progress: Notice) -> SlurmDaemons:
        # A slurmd whose step has no socket puts the job back into the queue, and holds it there.
        if len(slurm_conf.step_socket(self.run_dir, self.shape).encode()) > _MAX_SOCKET_PATH:
            raise StagingError(f"{self.run_dir}: the path is too long for a socket in it; name another directory")
        missing = [name for name in PROGRAMS if not _program(name)]
        if missing:
            install.apt_install(f"Slurm's sandbox needs {', '.join(missing)}", PACKAGES, progress)
        known = SlurmRecord.load(self.run_dir)
        ports = known.ports if known else _choose_ports(self.shape)
        shutil.rmtree(self.run_dir / "log", ignore_errors=True)
        (self.run_dir / "log").mkdir()
        slurm_conf.write(self.run_dir, self.shape, ports, secrets.token_hex(16))
        record = SlurmRecord(self.shape, ports)
        record.save(self.run_dir)
        return SlurmDaemons(self.run_dir, record)

    def start(self, name: str) -> None:
        """Start one daemon, unless it runs, and return when it listens and all nodes that run are counted."""
        daemons = self._loaded()
        if not daemons.alive(name):
            daemons.spawn(daemons.role(name))
            daemons.wait_listening([daemons.role(name)])
        if name == "slurmctld" or name in self.shape.node_names:
            daemons.wait_nodes()

    def stop(self, name: str, signal: int = signals.SIGTERM) -> None:
        """Stop one daemon. The controller is stopped when no job is completing, if that happens within a moment:
        otherwise it would not hear that the node is done with such a job, and would drain the node a minute later."""
        deadline = time.monotonic() + CANCEL_LIMIT_S
        while name == "slurmctld" and self._loaded().has_completing_jobs() and time.monotonic() < deadline:
            time.sleep(0.1)
        super().stop(name, signal)

    def lose_node(self, name: str) -> None:
        """KILL a node's slurmd with everything that runs on the node, as a power failure does."""
        daemons = self._loaded()
        daemons.kill_processes_of(daemons.role(name).name)
        daemons.stop([name])  # it is recorded as stopped


class SlurmDaemons(Daemons[DaemonRole, SlurmRecord]):
    """Starts and stops the daemons of one Slurm, with the processes that they have started."""

    def __init__(self, run: Path, record: SlurmRecord) -> None:
        ports, self.shape = record.ports, record.shape
        host, _ = slurm_conf.address()
        controller, database = f"{host}:{ports.controller}", f"{host}:{ports.database}"
        nodes = zip(self.shape.node_names, ports.nodes, strict=True)
        roles = [
            DaemonRole("munged", "munged"),
            DaemonRole("mariadbd", "MariaDB"),
            DaemonRole("slurmdbd", "slurmdbd", database),
            DaemonRole("slurmctld", "slurmctld", controller),
            *(DaemonRole(name, "slurmd", f"{host}:{port}") for name, port in nodes),
        ]
        super().__init__(run, record, roles)

    def _environment(self, name: str = "tool") -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        socket = {"MYSQL_UNIX_PORT": str(self.run / "mariadb.sock")}  # the only way to tell slurmdbd
        return {
            "PATH": NODE_PATH,
            **kept,
            "SLURM_CONF": f"{self.run}/slurm.conf",
            **socket,
            MARK: f"{self.run}/{name}",
        }

    def _command(self, role: DaemonRole) -> tuple[list[str], Mapping[str, str]]:
        run, program = self.run, _program(role.title.lower() if role.title != "MariaDB" else "mariadbd")
        options = {
            "munged": [
                *("--foreground", "--force", f"--key-file={run}/munge/key", f"--socket={run}/munge/socket"),
                *(f"--pid-file={run}/munge/pid", f"--log-file={run}/log/munged.log", f"--seed-file={run}/munge/seed"),
                "--num-threads=2",
            ],
            "MariaDB": [
                *(*self._database_options("db"), f"--socket={run}/mariadb.sock"),
                *(f"--pid-file={run}/mariadb.pid", f"--init-file={run}/database.sql"),
            ],
            "slurmctld": ["-D", "-f", f"{run}/slurm.conf"],
            "slurmdbd": ["-D"],
            "slurmd": ["-D", "-N", role.name, "-f", f"{run}/slurm.conf"],
        }
        return [program, *options[role.title]], self._environment(role.name)

    def _database_options(self, directory: str) -> list[str]:
        sizes = ("--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-lock-wait-timeout=900")
        # Temporary tables in /tmp are named after the process: another namespace may have a process of this number.
        places = (f"--datadir={self.run}/{directory}", f"--tmpdir={self.run / 'tmp'}")
        own = (f"--user={getpass.getuser()}", *places, "--skip-networking")
        return ["--no-defaults", *own, *sizes]  # the first must be the first

    def _start_missing(self) -> None:
        (self.run / "tmp").mkdir(mode=0o700, exist_ok=True)
        self._make_database()
        self._start(["munged", "mariadbd"])
        sockets = [self.run / "munge" / "socket", self.run / "mariadb.sock"]
        self.wait("munged and MariaDB", lambda: all(socket.exists() for socket in sockets))
        self._start(["slurmdbd"])
        self._register_user()
        self._start(["slurmctld"])
        self._start(self.shape.node_names)
        self.wait_nodes()

    def _start(self, names: Sequence[str]) -> None:
        roles = [self.roles[name] for name in names if not self.alive(name)]
        for role in roles:
            self.spawn(role)
        self.wait_listening(roles)

    def _make_database(self) -> None:
        """Make the database's own tables if they are missing."""
        if (self.run / "db").exists():
            return
        found = next((where for where in _SQL_DIRECTORIES if (where / SQL[0]).exists()), None)
        if found is None:
            raise EngineUnavailable(f"MariaDB's {SQL[0]} is in none of {', '.join(map(str, _SQL_DIRECTORIES))}")
        fresh = self.run / "db.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        text = "create database mysql;\nuse mysql;\n" + "".join((found / name).read_text() for name in SQL)
        self._run([_program("mariadbd"), *self._database_options(fresh.name), "--bootstrap"], text)
        fresh.rename(self.run / "db")

    def _register_user(self) -> None:
        """Give this user an account. Without one Slurm refuses jobs if accounts are enforced."""
        manage, user = [_program("sacctmgr"), "--immediate", "add"], getpass.getuser()
        self._run([*manage, "cluster", CLUSTER], already="already exists")
        self._run([*manage, "account", CLUSTER, f"cluster={CLUSTER}"], already="Nothing new added")
        self._run(
            [*manage, "user", user, f"account={CLUSTER}", f"defaultaccount={CLUSTER}"], already="Nothing new added"
        )

    def _run(self, command: list[str], text: str = "", already: str = "") -> str:
        environment = self._environment()
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, timeout=TOOL_LIMIT_S
        )
        if done.returncode and not (already and already in done.stdout + done.stderr):
            said = (done.stderr or done.stdout).strip()[-500:]
            raise EngineUnavailable(f"`{' '.join(command)}` failed: {said}")
        return done.stdout

    def wait_nodes(self) -> None:
        """Return when the controller counts exactly those nodes as up whose slurmd runs."""
        living = {name for name in self.shape.node_names if self.alive(name)}

        def counted() -> bool:
            with contextlib.suppress(EngineUnavailable, subprocess.TimeoutExpired):
                rows = [line.split() for line in self._run([_program("sinfo"), "-hNo", "%N %T"]).splitlines()]
                return {row[0] for row in rows if NODE_UP.match(row[1])} == living
            return False

        self.wait(f"Slurm with {len(living)} nodes", counted)

    def has_completing_jobs(self) -> bool:
        """Return whether a node is not yet done with a job that has ended; False if the controller does not answer."""
        with contextlib.suppress(EngineUnavailable, subprocess.TimeoutExpired):
            return bool(self._run([_program("squeue"), "-ht", "CG", "-o", "%A"]).split())
        return False

    def stop_all(self, progress: Notice = no_notice) -> None:
        """Cancel the jobs, whose processes would run on, and stop the nodes before the rest."""
        if self.alive("slurmctld"):
            self._cancel_jobs()
        for names in (self.shape.node_names, ["slurmctld"], ["slurmdbd"], ["mariadbd", "munged"]):
            self.stop(names)
        self.kill_processes_of("")
        for name in self.shape.node_names if self.shape.memory_limits else ():
            for directory, _, _ in os.walk(slurm_conf.MEMORY_GROUPS / f"slurm_{name}", topdown=False):
                with contextlib.suppress(OSError):  # the kernel has not ended a process of it yet
                    Path(directory).rmdir()

    def _cancel_jobs(self) -> None:
        deadline = time.monotonic() + CANCEL_LIMIT_S
        with contextlib.suppress(EngineUnavailable, subprocess.TimeoutExpired):
            while waiting := self._run([_program("squeue"), "-ho", "%A"]).split():
                if time.monotonic() > deadline:
                    return
                self._run([_program("scancel"), *waiting], already="Invalid job id")
                time.sleep(0.2)

    def kill_processes_of(self, name: str) -> None:
        """KILL a node's slurmd, the processes that it has started and those of jobs there; "" means all nodes. No
        process survives to report the end of another."""
        stopped: list[Process] = []
        while fresh := [each for each in self._processes_on(name) if each not in stopped]:
            fresh.sort(key=_reports, reverse=True)
            for each in fresh:
                each.send(signals.SIGSTOP)
            stopped += fresh
        process.stop(filter(_reports, stopped), signals.SIGKILL)
        process.stop(stopped, signals.SIGKILL)

    def _processes_on(self, name: str) -> list[Process]:
        """Return the processes of a node; "" means all nodes. These are its slurmd and the processes that it has
        started, the processes of steps with all their descendants, and each srun for a job whose batch script is on the
        node, since srun may have left its session."""
        end, conf = "\0" if name else "", {"SLURM_CONF": f"{self.run}/slurm.conf\0"}
        spool = self.run / name
        # The title of a slurmstepd has taken its environment's place.
        found = process.with_socket_below(spool, "slurmstepd")
        found += process.with_variables({MARK: f"{self.run}/{name}{end}"})
        found += process.with_variables({**conf, "SLURM_JOB_ID": "", "SLURMD_NODENAME": f"{name}{end}"})
        jobs = "|".join(path.name.removeprefix("job").lstrip("0") for path in spool.glob("job*")) if name else r"\d+"
        sruns = re.compile(rf"srun .*--jobid=({jobs}) ")
        found += [each for each in process.with_variables(conf) if sruns.search(process.command_line(each.pid))]
        return [each for each in process.with_descendants(found) if each.pid != os.getpid()]


def _reports(each: Process) -> bool:
    """Return whether a process reports the ends of others to the controller, or to an srun."""
    return process.command_name(each.pid) in ("slurmd", "slurmstepd")


def _program(name: str) -> str:
    """Return the path of a program, even if it is in a directory where only root looks; "" if it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{NODE_PATH}") or ""


def _choose_ports(shape: SlurmShape) -> SlurmPorts:
    first, second, *rest = addresses.free_ports(2 + shape.nodes)
    return SlurmPorts(first, second, tuple(rest))
