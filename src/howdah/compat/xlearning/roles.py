"""Makes the roles of an XLearning job: the workers, the roles beside them, and the effect of their failures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from howdah.compat.xlearning.app_types import IDLE_APP_TYPES, INDEPENDENT, TENSORFLOWS, AppType, app_type
from howdah.compat.xlearning.settings import PAGE, XLearningSetting, XLearningSettings
from howdah.frameworks import BUILT_IN
from howdah.spec import Deadline, Placement, Resources, Role
from howdah.spec.values import dataclass

Command = str | tuple[str, ...]
HOROVOD = {
    "timeline": "HOROVOD_TIMELINE",
    "fusion.threshold": "HOROVOD_FUSION_THRESHOLD",
    "cycle.time": "HOROVOD_CYCLE_TIME",
    "stall.check.disable": "HOROVOD_STALL_CHECK_DISABLE",
    "hierarchical.allreduce": "HOROVOD_HIERARCHICAL_ALLREDUCE",
    "mpi.threads.disable": "HOROVOD_MPI_THREADS_DISABLE",
}
AFTER_TRAINERS_S = 3600.0
"""Seconds that the evaluator, and servers that save their data, may take after the last trainer."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class JobRoles:
    """The roles of a job, and the properties that belong to all of them."""

    roles: Mapping[str, Role]
    """The roles by name."""
    framework: str
    """The job's framework."""
    trainers: tuple[str, ...]
    """The roles that read data and make outputs."""
    success: str = "all"
    """The spec's rule for success."""

    @property
    def trainer_names(self) -> list[str]:
        """Return the tasks of the trainers, by their number."""
        return [f"{name}:{number}" for name in self.trainers for number in range(self.roles[name].replicas)]

    def trainer(self, settings: XLearningSettings, key: str) -> str:
        """Return the task whose number is the value of `key`; "" and a mistake if there is none."""
        index, names = settings.number(key, 0), self.trainer_names
        if 0 <= index < len(names):
            return names[index]
        settings.wrong(key, f"is {index}, the workers are 0 to {len(names) - 1}")
        return ""


@dataclass(frozen=True)
class AppKind:
    """The application type of a job."""

    name: str
    """The type's name in capitals."""
    type: AppType
    """The way in which the type is run."""
    single: bool = False
    """Whether its tasks do not know of each other."""
    strategy: bool = False
    """Whether TensorFlow's distribution strategies are used."""


def kind_of(settings: XLearningSettings, default: str, strategy: bool) -> AppKind:
    """Return the application type; `strategy` is the command's default for TensorFlow's distribution strategies."""
    name = settings.text("app.type", default).upper()
    type_ = app_type(name)
    if type_.framework not in BUILT_IN:
        settings.wrong("app.type", f"is {name}, which isn't supported yet ({PAGE})")
    workers, servers = settings.number("worker.num", 1), settings.number("ps.num", 0)
    strategy = settings.flag("tf.distribution.strategy", strategy)
    if name in TENSORFLOWS:
        single = workers + servers == 1 if strategy else servers == 0
        single = single or settings.flag("tf.mode.single")
    else:
        single = type_.servers and (servers == 0 or settings.flag("mxnet.mode.single"))
    return AppKind(name, type_, single, strategy)


def job_roles(
    settings: XLearningSettings, kind: AppKind, command: Command, growth: Mapping[str, str], master: Resources
) -> JobRoles:
    """Return all roles, with those that share the data. `growth` has the command's defaults for the memory after a
    failure, `master` is the size of a helper."""
    if settings.number("app.max.attempts", 1) > 1:
        for name, share in growth.items():
            settings.values.setdefault(f"{name}.mem.autoscale", XLearningSetting(share, f"{name}.mem.autoscale"))
    command = _sleep(settings, kind.name) if kind.name in IDLE_APP_TYPES else command
    workers = _role(settings, "worker", command, 1)
    roles = {"worker": workers}
    if kind.name in TENSORFLOWS and not kind.single and workers.replicas > 1:
        roles = _with_chief_and_evaluator(settings, workers)
    trainers = tuple(name for name in roles if name != "evaluator")
    strict = kind.type.strict and not kind.single
    if kind.type.servers and settings.number("ps.num", 0):
        # XLearning started servers also beside independent tasks, which do not use them.
        servers = _role(settings, "ps", command, 0)
        roles["ps"] = _awaited(servers, trainers, "fail") if kind.type.servers_end and not kind.single else servers
    elif not kind.type.servers and any(settings.given(f"ps.{size}") for size in ("memory", "cores", "gpus", "num")):
        settings.notes.append(f"--ps-… is ignored: {kind.name} has no parameter servers")
    if kind.type.helper and not kind.single:
        roles |= _helper(settings, kind.type, command, master)
    return JobRoles(roles, _framework(kind), trainers, "all" if strict else _share(settings, roles, trainers))


def _framework(kind: AppKind) -> str:
    if not kind.single:
        strategy = kind.strategy and kind.name == "TENSORFLOW"
        return "xlearning-tensorflow-strategy" if strategy else kind.type.framework
    return "xlearning-tensorflow-single" if kind.name in TENSORFLOWS else INDEPENDENT.framework


def _role(settings: XLearningSettings, name: str, command: Command, replicas: int) -> Role:
    return Role(
        command=command,
        replicas=settings.number(f"{name}.num", replicas),
        resources=Resources(
            memory_mib=_with_overhead(settings, settings.memory(f"{name}.memory")),
            vcores=settings.number(f"{name}.cores", 1),
            gpus=settings.number(f"{name}.gpus", 0),
            growth=settings.fraction(f"{name}.mem.autoscale", 0.0),
        ),
        node_label=settings.text(f"{name}.nodeLabelExpression"),
        placement=Placement(avoid=tuple(settings.get_list("host.blacklist"))),
    )


def _with_overhead(settings: XLearningSettings, memory_mib: int) -> int:
    """Return the memory of a task. All of it is for the program; the overhead for a JVM is added only if it is set."""
    if not (settings.given("memory.overhead.fraction") or settings.given("memory.overhead.minimum")):
        return memory_mib
    share = memory_mib * settings.fraction("memory.overhead.fraction", 0.1)
    return memory_mib + max(math.ceil(share), settings.memory("memory.overhead.minimum", 384))


def _with_chief_and_evaluator(settings: XLearningSettings, workers: Role) -> dict[str, Role]:
    """Make a chief of another size a role of its own, and the evaluator, too; both count among the workers."""
    roles, left = {"worker": workers}, workers.replicas
    memory = settings.memory("worker.memory")
    if settings.flag("tf.evaluator"):
        left -= 1
        roles["evaluator"] = _of_size(settings, workers, "evaluator.worker.memory", memory)
    if settings.memory("chief.worker.memory", memory) != memory:
        left -= 1
        roles = {"chief": _of_size(settings, workers, "chief.worker.memory", memory), **roles}
    if left:
        roles["worker"] = replace(workers, replicas=left)
    else:
        del roles["worker"]
    if "evaluator" in roles:
        trainers = tuple(name for name in roles if name != "evaluator")
        roles["evaluator"] = replace(_awaited(roles["evaluator"], trainers, "stop"), on_failure="ignore")
    return roles


def _awaited(role: Role, trainers: tuple[str, ...], then: str) -> Role:
    """Make the job wait for a role that ends after the trainers, and is idle between their requests or checkpoints.
    XLearning waited for the evaluator without a limit, and failed a job whose servers did not end."""
    return replace(role, tracked=True, deadline=Deadline(trainers, AFTER_TRAINERS_S, then), on_stall="ignore")


def _of_size(settings: XLearningSettings, workers: Role, key: str, memory_mib: int) -> Role:
    size = _with_overhead(settings, settings.memory(key, memory_mib))
    return replace(workers, replicas=1, resources=replace(workers.resources, memory_mib=size))


def _helper(settings: XLearningSettings, type_: AppType, command: Command, master: Resources) -> dict[str, Role]:
    """Return the helper's role, which has the size of the application master in which it ran."""
    memory = settings.memory("driver.memory", master.memory_mib)
    size = Resources(memory, settings.number("driver.cores", master.vcores))
    if not type_.helper_command:
        return {type_.helper: Role(command, resources=size)}
    aliases = [entry.partition("#")[2] for entry in settings.get_list("cacheArchive")]
    return {type_.helper: Role(type_.helper_command, resources=size)} if type_.helper_archive in aliases else {}


def _share(settings: XLearningSettings, roles: Mapping[str, Role], trainers: tuple[str, ...]) -> str:
    """Return the success rule: the job succeeds if fewer than half of its tasks fail, or fewer than the rate that is
    set."""
    rate = settings.fraction("container.maxFailures.rate", 0.5)
    count = sum(roles[name].replicas for name in trainers)
    needed = min(count, max(0, count + 1 - math.ceil(count * rate)))
    return "all" if needed == count else _percent(needed, count)


def _percent(needed: int, count: int) -> str:
    """Return the shortest percentage of `count` tasks that stands for `needed` of them; with many tasks one task is
    less than one per cent."""
    for digits in range(5):
        text = f"{100 * 10**digits * needed // count / 10**digits:.{digits}f}"
        if math.ceil(count * Fraction(text) / 100) == needed:
            break
    return f"{text}%"


def variables(settings: XLearningSettings, job_roles: JobRoles, kind: AppKind) -> Mapping[str, str]:
    """Return the variables that programs of some types read."""
    if kind.name == "HOROVOD":
        return dict(_horovod(settings))
    if kind.name != "XDL":
        return {}
    if not kind.single and "ZK_ADDR" not in settings.environment:
        settings.wrong_at(
            "--app-type",
            "is XDL, whose tasks meet at a ZooKeeper that hbox-submit ran in Docker: start one and name it by "
            f"--conf hbox.container.env.ZK_ADDR=zfs://host:port/path ({PAGE})",
        )
    servers = job_roles.roles["ps"].resources if "ps" in job_roles.roles else Resources()
    return {"PS_CPU_CORES": str(servers.vcores), "PS_MEMORY_M": str(servers.memory_mib)}


def _horovod(settings: XLearningSettings) -> Iterator[tuple[str, str]]:
    for key, variable in HOROVOD.items():
        text = settings.text(f"horovod.{key}")
        if text and text.lower() not in ("false", "-1"):
            yield variable, "1" if text.lower() == "true" else text
    if settings.number("horovod.process.num.per.worker", 1) != 1:
        settings.wrong("horovod.process.num.per.worker", "must be 1 here: one task is one process; raise --worker-num")


def _sleep(settings: XLearningSettings, kind: str) -> Command:
    text = settings.text("vpc.duration", "1d")
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if not match:
        settings.wrong("vpc.duration", f"is {text!r}, must be a number, or end in s, m, h or d")
        return ("sleep", "0")
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    limit = f"{seconds:g}" if seconds else "infinity"
    if kind == "VPC":
        settings.notes.append(f"--app-type VPC: the container waits, but users can't log in to it by ssh ({PAGE})")
        return ("sleep", limit)
    return f'timeout {limit} python -m digits -p "$HOWDAH_PORT" || [ $? = 124 ]'
