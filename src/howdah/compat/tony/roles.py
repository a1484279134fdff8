"""Turns TonY's job types into roles: which are waited for, which failures end the job, which roles start later.

TonY's rules (TonySession, TaskScheduler, MLGenericRuntime): a failure of the chief (`chief`, else `worker:0`), or of a
job type that stops on failure, ends the job at once. Other tracked tasks may fail as long as not all do. A crash of an
untracked task ends the job, a crash of a sidecar does not.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from howdah.compat.tony.conf import Conf
from howdah.compat.tony.keys import DEPENDENCY
from howdah.hadoop.constraints import parse
from howdah.spec import Deadline, JobSpec, Placement, Resources, Role
from howdah.spec.validation import nearest

_INSTANCES = re.compile(r"tony\.([a-z]+)\.instances")
_COMMAND = re.compile(r"tony\.([a-z]+)\.command")
_LIMIT = re.compile(r"tony\.task\.max-total-([a-z]+)")
SINGLE = ("driver", "notebook")
"""The names of the only task in single-node mode; the second is that of NotebookSubmitter."""
PREPROCESS = "preprocess"
"""The role that stands for the first run of the command, in TonY's application master."""
OWN_DRIVER = "tony.horovod.driver.mode.debug"
SINGLE_NODE = "tony.application.single-node"
MODEL_PARAMS = "Model parameters: "
WITHOUT_LIMIT_S = 10 * 365 * 86400.0


def job_types(conf: Conf) -> dict[str, int]:
    """Return the number of instances of each job type; no job type means single-node mode, which may also be set."""
    found: dict[str, int] = {}
    if conf.flag(SINGLE_NODE):
        return found
    for key in conf.values:
        if match := _INSTANCES.fullmatch(key):
            count = conf.number(key)
            if count < 0:
                conf.wrong(key, f"is {count}, must be 0 or more")
            elif count:
                found[match[1]] = count
    if found and conf.get("tony.application.framework").lower() == "horovod" and conf.flag(OWN_DRIVER):
        found.setdefault("driver", 1)
    _check_limits(conf, found)
    return found


def unused_commands(conf: Conf, types: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the keys that give a command to a job type without instances, and the job type."""
    for key in conf.explicit_keys():
        if (match := _COMMAND.fullmatch(key)) and match[1] not in (*types, "containers", "am"):
            yield key, match[1]


def key_name(name: str, types: Mapping[str, int]) -> str:
    """Return the name of a role in keys: `am` if it ran in TonY's application master."""
    return "am" if (name == PREPROCESS and name not in types) or (name in SINGLE and not types) else name


def single_node_role(conf: Conf, command: str) -> Role:
    """Return the only role of single-node mode, which ran in TonY's application master, as preprocessing did."""
    return Role(
        command=conf.get("tony.am.command") or command,
        resources=_resources(conf, "am"),
        env={"PREPROCESSING_JOB": "true"},
        tracked=True,
        image=_image(conf, "am"),
    )


def roles(conf: Conf, types: Mapping[str, int], command: str) -> dict[str, Role]:
    """Return the role of each job type, with its own command if it has one."""
    found = _with_stages(conf, {name: role(conf, name, command, count) for name, count in types.items()})
    return _with_deadlines(conf, _with_ignored_failures(conf, found))


def role(conf: Conf, name: str, command: str, count: int = 1) -> Role:
    """Return the role of one job type."""
    untracked, ignored = (conf.get_list(f"tony.application.{kind}.jobtypes") for kind in ("untracked", "sidecar"))
    return Role(
        command=conf.get(f"tony.{name}.command") or command,
        replicas=count,
        resources=_resources(conf, name),
        node_label=conf.get(f"tony.{name}.node-label"),
        tracked=name not in (*untracked, *ignored),
        on_failure="ignore" if name in ignored else "fail",
        placement=_placement(conf, name),
        image=_image(conf, name),
    )


def with_success_rule(job: JobSpec) -> JobSpec:
    """Set the rule for success: `worker:0` alone decides if other workers may fail."""
    tracked = [name for name, role in job.roles.items() if role.tracked]
    alone = tracked[0] if len(tracked) == 1 and job.roles[tracked[0]].replicas == 1 else ""
    name = alone or "worker"
    worker = job.roles.get(name)
    if worker is None or worker.on_failure != "ignore" or "chief" in job.roles:
        return job
    if worker.replicas == 1 or "master" in job.roles:  # a role `master` would be the chief here
        return dataclasses.replace(job, roles={**job.roles, name: dataclasses.replace(worker, on_failure="fail")})
    timeouts = dataclasses.replace(job.timeouts, grace_s=WITHOUT_LIMIT_S)
    return dataclasses.replace(job, success="chief", timeouts=timeouts)


def with_preprocessing(conf: Conf, roles: Mapping[str, Role], command: str) -> dict[str, Role]:
    """Make the command run once before all other roles, which get its output as MODEL_PARAMS."""
    alone = single_node_role(conf, command)
    first = dataclasses.replace(alone, on_failure="fail", yields={"MODEL_PARAMS": MODEL_PARAMS})
    later = {name: dataclasses.replace(role, after=(*role.after, PREPROCESS)) for name, role in roles.items()}
    return {PREPROCESS: first, **later}


def _resources(conf: Conf, name: str) -> Resources:
    vcores, gpus = conf.number(f"tony.{name}.vcores", 1), conf.number(f"tony.{name}.gpus")
    return Resources(conf.memory_mib(f"tony.{name}.memory"), vcores if conf.get(f"tony.{name}.vcores") else 1, gpus)


def _placement(conf: Conf, name: str) -> Placement:
    prefixes = (f"tony.{name}", "tony.containers", "tony.application")
    key = next((f"{prefix}.placement-spec" for prefix in prefixes if conf.get(f"{prefix}.placement-spec")), "")
    try:
        _ = parse(conf.get(key)) if key else None
    except ValueError as error:
        conf.wrong(key, f"is {conf.get(key)!r}: {error}")
    tags = next(filter(None, (conf.get_list(f"{prefix}.allocation-tags") for prefix in prefixes[:2])), [])
    return Placement(constraint=conf.get(key) if key else "", tags=tuple(tags))


def _image(conf: Conf, name: str) -> str:
    return conf.get(f"tony.docker.{name}.image") if conf.flag("tony.docker.enabled") else ""


def _with_ignored_failures(conf: Conf, roles: Mapping[str, Role]) -> dict[str, Role]:
    """Ignore failures of the tracked roles whose failure TonY ignored as long as not all tasks failed."""
    stopping = {"chief", *conf.get_list("tony.application.stop-on-failure-jobtypes")}
    stopping |= {other for role in roles.values() for other in role.after}
    if conf.flag("tony.application.fail-on-worker-failure-enabled"):
        stopping |= roles.keys()
    return {
        name: dataclasses.replace(role, on_failure="ignore") if role.tracked and name not in stopping else role
        for name, role in roles.items()
    }


def _with_stages(conf: Conf, roles: Mapping[str, Role]) -> dict[str, Role]:
    """Make training-stage wait for prepare-stage; if one of them is not set, it stands for all other roles."""
    keys = [f"tony.application.{stage}-stage" for stage in ("prepare", "training")]
    first, second = (_known_names(conf, key, conf.get_list(key), roles) for key in keys)
    if not first and not second:
        return dict(roles)
    first = first or [name for name in roles if name not in second]
    second = second or [name for name in roles if name not in first]
    left = [name for name in roles if name not in (*first, *second)]
    if left or set(first) & set(second):
        what = f"{', '.join(left)} in neither" if left else f"{', '.join({*first} & {*second})} in both"
        conf.wrong(keys[0] if conf.get(keys[0]) else keys[1], f"with the other stage must hold each job type: {what}")
    before = tuple(name for name in first if roles[name].tracked)
    return {
        name: dataclasses.replace(role, after=before) if name in second and name not in first else role
        for name, role in roles.items()
    }


def _with_deadlines(conf: Conf, roles: dict[str, Role]) -> dict[str, Role]:
    """Read `dependency.evaluator.timeout.after.A=3600`, in seconds, where `group.A=worker,chief`."""
    for key in list(conf.explicit_keys()):
        match = DEPENDENCY.fullmatch(key)
        if match is None or match[3]:
            continue
        group = f"tony.application.group.{match[2]}"
        members = _known_names(conf, group, conf.get_list(group), roles)
        if not members:
            conf.wrong(key, f"speaks of a group that has no members: write {group}=worker,chief")
        elif _known_names(conf, key, [match[1]], roles):
            then = "untrack" if conf.flag(f"{key}.ignored") else "fail"
            deadline = Deadline(tuple(members), max(1.0, conf.seconds(key, 1.0)), then)
            roles[match[1]] = dataclasses.replace(roles[match[1]], deadline=deadline)
    return roles


def _known_names(conf: Conf, key: str, names: list[str], roles: Mapping[str, Role]) -> list[str]:
    for name in names:
        if name not in roles:
            near = nearest(name, roles)
            conf.wrong(key, f"names {name!r}, which has no instances; job types are {', '.join(roles)}", near)
    return [name for name in names if name in roles]


def _check_limits(conf: Conf, types: Mapping[str, int]) -> None:
    for name, count in types.items():
        maximum = conf.number(f"tony.{name}.max-instances", -1) if conf.get(f"tony.{name}.max-instances") else -1
        if 0 <= maximum < count:
            conf.wrong(f"tony.{name}.instances", f"is {count}, the limit is {maximum} (tony.{name}.max-instances)")
    totals: Counter[str] = Counter()
    for name, count in types.items():
        size = _resources(conf, name)
        each = {"instances": 1, "memory": size.memory_mib, "vcores": size.vcores, "gpus": size.gpus}
        totals.update({what: count * amount for what, amount in each.items()})
    for key in conf.explicit_keys():
        match = _LIMIT.fullmatch(key)
        maximum, total = conf.number(key, -1) if match else -1, totals[match[1]] if match else 0
        if 0 <= maximum < total:
            conf.wrong(key, f"is {maximum}, but the job types ask for {total} together")
