"""Describes a sandbox of Slurm, and writes the configuration of its daemons.

All daemons run on this machine: each slurmd is a node of its own (`slurmd -N n1`), with the CPUs, the memory and the
GPUs that the shape gives it, whatever the machine has. GPUs are links to /dev/null: Slurm counts them and sets
CUDA_VISIBLE_DEVICES, and there is nothing behind them.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from howdah.errors import Mistake, SpecError
from howdah.sandbox.daemons import MARK
from howdah.sandbox.sizes import size_mistakes
from howdah.spec.values import dataclass

CLUSTER, DATABASE, DATABASE_USER = "howdah", "slurm_acct_db", "slurm"
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
"""Where the kernel has the memory's control groups of version 1."""
MAX_NODES = 20
PARTITIONS: Mapping[str, str] = {
    "main": "Default=YES MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF",
    "preemptable": "MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE",
    "short": "MaxTime=2 PriorityTier=10 PreemptMode=OFF",
}
"""The partitions, which share all nodes. `main` preempts `preemptable`; jobs in `short` end after two minutes."""


CGROUP_CONF = """CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainRAMSpace=yes
"""


@dataclass(frozen=True)
class SlurmShape:
    """The specification by the user; two sandboxes of one shape differ only in directory and ports."""

    nodes: int = 3
    """The number of nodes, named n1, n2 and so on."""
    memory_mib: int = 8192
    """The memory that each node offers."""
    vcores: int = 8
    """The CPUs that each node offers."""
    gpus: int = 4
    """The GPUs that each node offers."""
    expiry_s: int = 15
    """Seconds of silence after which a node is lost."""
    memory_limits: bool = False
    """Whether a step that uses more memory than it asked for is killed. It needs root and cgroups v1, and no two
    sandboxes of one machine can have it at the same time: Slurm names the groups after the nodes."""

    @property
    def node_names(self) -> list[str]:
        """Return the names of the nodes: n1, n2 and so on."""
        return [f"n{number}" for number in range(1, self.nodes + 1)]


@dataclass(frozen=True)
class SlurmPorts:
    """The ports that a sandbox of Slurm listens at."""

    controller: int
    """The port of slurmctld."""
    database: int
    """The port of slurmdbd."""
    nodes: tuple[int, ...]
    """The ports of the slurmds, one per node."""


def first_job(ports: SlurmPorts) -> int:
    """Return the number of the first job, chosen so that two sandboxes at the same time have no job with the same
    number."""
    return ports.controller * 100 + 1


def step_socket(run: Path, shape: SlurmShape) -> str:
    """Return the longest path of a socket that a slurmd makes: that of a batch step on the last node."""
    node = shape.node_names[-1]
    return f"{run}/{node}/{node}_{0xFFFF * 100}.{0xFFFFFFFB}"


def address() -> tuple[str, bool]:
    """Return the loopback address of the daemons, and whether they listen only there: they can if the host's own name
    means loopback."""
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        found = ""
    return (found, True) if found.startswith("127.") else ("127.0.0.1", False)


def validate(shape: SlurmShape) -> SlurmShape:
    """Return the shape.

    Raises:
        SpecError: everything that is wrong in it.
    """
    minimum = {"nodes": 1, "memory_mib": 64, "vcores": 1, "gpus": 0, "expiry_s": 5}
    wrong = size_mistakes(shape, minimum, {"nodes": MAX_NODES})
    if shape.memory_limits and not (MEMORY_GROUPS / "release_agent").exists():
        wrong.append(Mistake("memory_limits", f"needs cgroups v1, and {MEMORY_GROUPS} has none"))
    if wrong:
        raise SpecError(wrong)
    return shape


def write(run: Path, shape: SlurmShape, ports: SlurmPorts, password: str) -> None:
    """Write the configuration into the run directory, with the other files that the daemons need."""
    for name in ("state", "munge", "gpus"):
        (run / name).mkdir(exist_ok=True, mode=0o700)
    (run / "munge").chmod(0o711)  # programs of other users may speak to munged through its socket
    for number in range(shape.gpus):
        device = run / "gpus" / f"gpu{number}"
        if not device.is_symlink():
            device.symlink_to(os.devnull)
    _write_secret(run / "munge" / "key", os.urandom(1024), replace=False)
    (run / "slurm.conf").write_text(_slurm_conf(run, shape, ports))
    # Every program has its node in its environment, by which `lose_node` finds it.
    (run / "task-prolog").write_text(f'#!/bin/sh\necho "export {MARK}={run}/$SLURMD_NODENAME"\n')
    (run / "task-prolog").chmod(0o755)
    (run / "cgroup.conf").write_text(CGROUP_CONF)
    (run / "gres.conf").write_text(_gres_conf(run, shape))
    _write_secret(run / "slurmdbd.conf", _slurmdbd_conf(run, ports, password).encode())
    _write_secret(run / "database.sql", _database_sql(password).encode())


def _write_secret(path: Path, content: bytes, replace: bool = True) -> None:
    if replace or not path.exists():
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)


def _slurm_conf(run: Path, shape: SlurmShape, ports: SlurmPorts) -> str:
    host, user, names = socket.gethostname(), getpass.getuser(), shape.node_names
    loopback, is_alone = address()
    gres = f" Gres=gpu:{shape.gpus}" if shape.gpus else ""
    size = f"CPUs={shape.vcores} RealMemory={shape.memory_mib}{gres} State=UNKNOWN"
    nodes = [
        f"NodeName={name} NodeAddr={loopback} NodeHostname={host} Port={port} {size}"
        for name, port in zip(names, ports.nodes, strict=True)
    ]
    partitions = [
        f"PartitionName={name} Nodes={','.join(names)} DefaultTime=60 State=UP {rest}"
        if "MaxTime=2" not in rest
        else f"PartitionName={name} Nodes={','.join(names)} State=UP {rest}"
        for name, rest in PARTITIONS.items()
    ]
    return f"""ClusterName={CLUSTER}
SlurmctldHost={host}({loopback})
SlurmctldPort={ports.controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={run}/munge/socket,cred_expire=10
CredType=cred/munge
StateSaveLocation={run}/state
SlurmdSpoolDir={run}/%n
SlurmctldPidFile={run}/state/slurmctld.pid
SlurmdPidFile={run}/state/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{"cgroup" if shape.memory_limits else "none"}
TaskProlog={run}/task-prolog
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,bf_hetjob_immediate,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
{"GresTypes=gpu" if shape.gpus else ""}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={loopback}
AccountingStoragePass={run}/munge/socket
AccountingStoragePort={ports.database}
AccountingStorageEnforce=limits,qos
AccountingStoreFlags=job_comment
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
PropagateResourceLimits=NOFILE
SlurmdParameters=config_overrides
SlurmdTimeout={shape.expiry_s}
KillWait=10
MinJobAge=300
MpiDefault=none
{"CommunicationParameters=NoInAddrAny,NoCtldInAddrAny" if is_alone else ""}
FirstJobId={first_job(ports)}
{os.linesep.join((*nodes, *partitions))}
"""


def _gres_conf(run: Path, shape: SlurmShape) -> str:
    files = f"{run}/gpus/gpu[0-{shape.gpus - 1}]" if shape.gpus > 1 else f"{run}/gpus/gpu0"
    names = ",".join(shape.node_names)
    return f"NodeName={names} Name=gpu File={files}\n" if shape.gpus else ""


def _slurmdbd_conf(run: Path, ports: SlurmPorts, password: str) -> str:
    loopback, is_alone = address()
    return f"""AuthType=auth/munge
AuthInfo=socket={run}/munge/socket
DbdHost={socket.gethostname()}
DbdAddr={loopback}
{"CommunicationParameters=NoInAddrAny" if is_alone else ""}
DbdPort={ports.database}
SlurmUser={getpass.getuser()}
PidFile={run}/state/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={DATABASE_USER}
StoragePass={password}
StorageLoc={DATABASE}
"""


def _database_sql(password: str) -> str:
    """Return the statements that the database executes at each start; it reads one statement a line."""
    return f"""create database if not exists {DATABASE};
create or replace user {DATABASE_USER}@localhost identified by '{password}';
grant all on {DATABASE}.* to {DATABASE_USER}@localhost;
"""
