"""TonY's submit commands (ClusterSubmitter, LocalSubmitter, NotebookSubmitter): makes a job from options and keys.

`howdah tony …` means the same as `java … com.linkedin.tony.cli.ClusterSubmitter …`; class names may replace the short
names. docs/coming-from-tony.md lists the differences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from howdah.compat import Parsed
from howdah.compat.tony import keys, roles, task_command
from howdah.compat.tony.conf import Conf, merge_configuration
from howdah.compat.tony.files import VENV, Files, collect_files
from howdah.compat.tony.options import TonyOptions, mode, parse_options
from howdah.errors import SpecError
from howdah.spec import JobSpec
from howdah.spec.job import Environment, Master, Role, Timeouts
from howdah.spec.validation import nearest

RUNTIMES = ("tensorflow", "pytorch", "mxnet", "horovod", "standalone")
NOTEBOOK_S = 24 * 3600.0
_RUN_LIMITS = ("tony.worker.timeout", "tony.task.executor.execution-timeout-ms")
# The key or option behind each place of the spec, of a role and of an entry of `files` or `archives`.
_KEYS = {
    "name": "tony.application.name",
    "queue": "tony.yarn.queue",
    "tags": "tony.application.tags",
    "framework": "tony.application.framework",
    "node_label": "tony.application.node-label",
    "retries": "tony.am.retry-count",
    "environment.image": "tony.docker.containers.image",
    "env": "tony.execution.envs",
}
_ROLE_KEYS = {"replicas": "instances", "node_label": "node-label", "placement.constraint": "placement-spec"}
_ROLE_KEYS |= {f"resources.{what}": what for what in ("memory", "vcores", "gpus")}
_ROLE_KEYS |= dict.fromkeys(("files", "archives"), "resources")
_FILE_OPTIONS = {".": "--src_dir", VENV: "--python_venv"}
_FILE_OPTIONS |= {f"{which}-site.xml": f"tony.application.{which}-conf-path" for which in ("hdfs", "yarn", "mapred")}


class Tony:
    """Reads TonY's command line. Files and paths are relative to `directory`, by default the current one; `hadoop` is
    the directory of Hadoop's configuration, which knows the cluster's file systems."""

    def __init__(
        self, directory: Path | None = None, environ: Mapping[str, str] | None = None, hadoop: str = ""
    ) -> None:
        self.hadoop = hadoop
        self.directory, self.environ = directory or Path.cwd(), os.environ if environ is None else environ

    def parse(self, argv: Sequence[str]) -> Parsed:
        submitter, rest = mode(argv)
        options = parse_options(rest)
        return self.job(submitter, options, merge_configuration(options, self.directory, self.environ, self.hadoop))

    def job(self, submitter: str, options: TonyOptions, conf: Conf) -> Parsed:
        """Return the job of these options under this configuration.

        Raises:
            SpecError: everything that is wrong with them.
        """
        notes = list(keys.check_keys(conf))
        types = roles.job_types(conf)
        names = [*types] if types else [_single(submitter)]
        if types and conf.flag("tony.application.enable-preprocess"):
            names.append(roles.PREPROCESS)
        files = collect_files(options, conf, {name: roles.key_name(name, types) for name in names}, self.directory)
        job = _job(submitter, options, conf, types, files)
        mistakes = [*options.mistakes, *conf.mistakes]
        if mistakes:
            raise SpecError(list(dict.fromkeys(mistakes)))
        return Parsed(job, _origins(job, options, conf, types), (*notes, *files.notes, *_notes(options, conf, types)))


def _job(submitter: str, options: TonyOptions, conf: Conf, types: Mapping[str, int], files: Files) -> JobSpec:
    found = files.given(_roles(submitter, options, conf, types))
    env = task_command.variables(options, conf, found)
    gang = conf.get("tony.application.distributed-mode").upper() != "FCFS"
    runtime = _runtime(conf, types)
    job = JobSpec(
        roles={name: task_command.with_home(name, role) for name, role in found.items()},
        name=conf.get("tony.application.name"),
        framework=runtime if gang and types else "tony",
        env=env,
        files=tuple(files.files),
        archives=tuple(files.archives),
        environment=_docker(conf),
        gang=gang,
        retries=max(0, conf.number("tony.am.retry-count")) if types else 0,  # single-node mode was never tried again
        queue=conf.get("tony.yarn.queue"),
        node_label=conf.get("tony.application.node-label"),
        tags=tuple(conf.get_list("tony.application.tags")),
        timeouts=_timeouts(conf, submitter),
        links=task_command.links(found),
        application_type=conf.get("tony.application.type"),
        master=Master(node_label=conf.get("tony.am.node-label")),
    )
    return roles.with_success_rule(job)


def _roles(submitter: str, options: TonyOptions, conf: Conf, types: Mapping[str, int]) -> dict[str, Role]:
    line = task_command.line(options, conf)
    if types:
        found = roles.roles(conf, types, line)
        if conf.get("tony.application.framework").lower() == "horovod":
            found = task_command.with_rendezvous(conf, options, found)
        if conf.flag("tony.application.enable-preprocess"):
            found = roles.with_preprocessing(conf, found, line)
    else:
        found = {_single(submitter): roles.single_node_role(conf, line)}
    found = task_command.with_tensorboard(options, conf, found)
    task_command.check(conf, found)
    return found


def _single(submitter: str) -> str:
    """Return the name of the only task in single-node mode."""
    return roles.SINGLE[submitter == "notebook"]


def _runtime(conf: Conf, types: Mapping[str, int]) -> str:
    key = "tony.application.framework"
    name, distributed = conf.get(key).lower(), conf.get("tony.application.distributed-mode").upper()
    if name not in RUNTIMES:
        conf.wrong(key, f"is {name!r}, must be one of {', '.join(RUNTIMES)}", nearest(name, RUNTIMES))
    elif distributed not in ("GANG", "FCFS"):
        conf.wrong("tony.application.distributed-mode", f"is {distributed!r}, must be GANG or FCFS")
    elif name == "horovod" and distributed == "FCFS":
        conf.wrong("tony.application.distributed-mode", "is FCFS, but Horovod's workers start together: write GANG")
    elif name == "standalone" and types and sum(types.values()) != 1:
        conf.wrong(key, f"is standalone, which is one instance in all, not {sum(types.values())}")
    elif name == "pytorch" and types and "worker" not in types and distributed == "GANG":
        conf.wrong(key, "is pytorch, whose processes meet at worker:0: set tony.worker.instances")
    elif name == "mxnet" and types and types.get("scheduler", 0) != 1:
        conf.wrong("tony.scheduler.instances", "must be 1: MXNet's processes meet at the scheduler")
    return "tony" if name == "standalone" else f"tony-{name}"


def _docker(conf: Conf) -> Environment:
    enabled = conf.flag("tony.docker.enabled") or conf.flag("tony.application.docker.enabled")
    if not enabled:
        return Environment()
    image = conf.get("tony.docker.containers.image") or conf.get("tony.application.docker.image")
    if not image:
        conf.wrong("tony.docker.enabled", "is true, but there is no image: set tony.docker.containers.image")
    return Environment(image=image, mounts=tuple(conf.get_list("tony.docker.containers.mount")))


def _timeouts(conf: Conf, submitter: str) -> Timeouts:
    """Return the timeouts; by default TonY had none."""
    forming_s = sum(conf.seconds(f"tony.container.{what}.timeout") for what in ("allocation", "registration"))
    forming_s += conf.seconds("tony.task.executor.registry-timeout-sec", 1.0)
    running = map(conf.seconds, _RUN_LIMITS)
    total = NOTEBOOK_S if submitter == "notebook" else conf.seconds("tony.application.timeout")
    return Timeouts(gang_s=forming_s, run_s=min(filter(None, running), default=0.0), total_s=total)


def _notes(options: TonyOptions, conf: Conf, types: Mapping[str, int]) -> list[str]:
    notes = []
    if conf.get("tony.am.startup-timeout") not in ("", "0"):
        notes.append("tony.am.startup-timeout has no effect: while the master waits for room, you are told")
    for key in _RUN_LIMITS:
        if conf.seconds(key):
            notes.append(f"{key} ends the whole job here, not one task")
    if conf.flag(roles.SINGLE_NODE) and any(key.endswith(".instances") for key in conf.explicit_keys()):
        notes.append(f"{roles.SINGLE_NODE} is true: instances of job types have no effect")
    for key, name in roles.unused_commands(conf, types):
        notes.append(f"{key} ({conf.origins[key]}) has no effect: tony.{name}.instances is not set, or is 0")
    if "debug" in options.flags:
        notes.append("--debug keeps nothing: howdah makes no zip files beside your sources")
    return notes


def _origins(job: JobSpec, options: TonyOptions, conf: Conf, types: Mapping[str, int]) -> dict[str, str]:
    """Return the option or key behind each place of the spec, with the file and line of a key."""

    def located(key: str) -> str:
        return f"{key}, {conf.origins[key]}" if key in conf.origins else key

    found = {place: located(key) for place, key in _KEYS.items()}
    found |= {f"env.{name}": "--shell_env" for name in options.pairs("shell_env")}
    for name in job.roles:
        keys_of = f"tony.{roles.key_name(name, types)}"
        command = f"{keys_of}.command"
        found[f"roles.{name}.command"] = located(command) if conf.get(command) else "--executes"
        found |= {f"roles.{name}.{place}": located(f"{keys_of}.{key}") for place, key in _ROLE_KEYS.items()}
    for kind, entries in (("files", job.files), ("archives", job.archives)):
        for number, entry in enumerate(entries):
            key = _FILE_OPTIONS.get(entry.rpartition("#")[2], "tony.containers.resources")
            found[f"{kind}.{number}"] = located(key)
    return found
