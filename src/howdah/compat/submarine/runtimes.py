"""Makes the roles of Submarine's two runtimes.

The runtime of 0.1 and 0.2 is a YARN service: the first worker is `master`, and ends the job. That of 0.3 and 0.4 is
TonY: options become TonY's keys, which `compat.tony` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.compat import Parsed
from howdah.compat.submarine.launch import Commands
from howdah.compat.submarine.options import ROLES, SubmarineOptions, kind_of_task
from howdah.spec import JobSpec

if TYPE_CHECKING:
    from howdah.compat.tony.conf import Conf

_NATIVE = {"tensorflow": "submarine-tensorflow", "pytorch": "submarine-pytorch"}


def service_job(options: SubmarineOptions, commands: Commands) -> JobSpec:
    """Return the job with its roles and its rule for success."""
    roles, count = dict(commands.roles), commands.counts["worker"]
    legacy = options.given("legacy")
    if count:
        worker = roles.pop("worker")
        others = replace(worker, replicas=count - 1, on_failure="ignore" if legacy else "")
        roles = {"master": worker, **({"worker": others} if count > 1 else {}), **roles}
    if "ps" in roles:
        roles["ps"] = replace(roles["ps"], replicas=commands.counts["ps"])
    framework = options.text("framework", "tensorflow").lower()
    independent = not count or (legacy and "ps" not in roles)
    return JobSpec(
        roles=roles,
        name=options.text("name"),
        framework="submarine" if independent else _NATIVE[framework],
        success="chief" if count > 1 else "all",
        queue=options.text("queue"),
    )


def notes(options: SubmarineOptions, job: JobSpec) -> Iterator[str]:
    """Yield notes on the differences that matter for this job."""
    improved = not options.given("legacy")
    if improved and "worker" in job.roles and "ps" not in job.roles and job.framework.startswith("submarine-"):
        what = "a process group" if job.framework == "submarine-pytorch" else "a cluster with a chief"
        yield f"the workers form {what}; to Submarine they were strangers, as they are with --legacy"
    below = [option for option in options.places if "." in option]
    if below and improved:
        places = ", ".join(options.places[option][0] for option in below)
        yield f"{places}: counts here; Submarine ignored what is below a role: --legacy"


def wants_tony(options: SubmarineOptions) -> bool:
    """Return whether an option is set that only TonY's runtime had."""
    return options.given("insecure") or any(text.startswith("tony.") for text in options.get_list("conf"))


def tony_job(
    options: SubmarineOptions, commands: Commands, directory: Path, environ: Mapping[str, str], hadoop: str
) -> Parsed:
    """Return the job that TonY makes from the roles.

    Raises:
        SpecError: `compat.tony` refuses a key, or a file is no configuration.
    """
    from howdah.compat.tony.conf import Conf
    from howdah.compat.tony.options import TonyOptions, parse_pair
    from howdah.compat.tony.submit import Tony  # only these jobs need it

    conf = Conf(environ, hadoop)
    _add_own_file(conf)
    framework = options.text("framework", "tensorflow").lower()
    servers = "server" if framework == "mxnet" else "ps"

    def put(key: str, value: str, option: str) -> None:
        conf.set(key, value)
        conf.origins[key] = options.where(option)

    put("tony.application.name", options.text("name"), "name")
    put("tony.application.framework", framework, "framework")
    if options.given("queue"):
        put("tony.yarn.queue", options.text("queue"), "queue")
    for role, requested in commands.roles.items():
        name = servers if role == "ps" else role
        put(f"tony.{name}.instances", str(commands.counts[role]), ROLES[role])
        put(f"tony.{name}.command", str(requested.command), f"{role}_launch_cmd")
        size = requested.resources
        for what, amount in (("memory", f"{size.memory_mib}m"), ("vcores", size.vcores), ("gpus", size.gpus)):
            put(f"tony.{name}.{what}", str(amount), f"{role}_resources")
    for text in options.get_list("conf"):
        key, value = parse_pair(text, "--conf", conf.mistakes)
        conf.set(key, value)
        if not key.startswith("tony."):
            options.notes.append(f"--conf {key}: has no effect, only tony.… keys have")
    conf.add_site()  # it comes last, because Submarine handed its own configuration to TonY as a file
    parsed = Tony(directory, environ, hadoop).job("cluster", TonyOptions(), conf)
    roles = dict(parsed.job.roles)
    for name, made in parsed.job.roles.items():
        if source := commands.roles.get(kind_of_task(name)):
            resources = replace(made.resources, named=source.resources.named)
            roles[name] = replace(made, resources=resources, image=made.image or source.image)
    return replace(parsed, job=replace(parsed.job, roles=roles))


def _add_own_file(conf: Conf) -> None:
    """Add the properties of `tony.xml` beside Hadoop's own files, which was on Submarine's class path."""
    from howdah.hadoop import conf as hadoop_conf

    directory = hadoop_conf.directory(conf.hadoop)
    file = Path(directory, "tony.xml")
    if directory and file.is_file():
        conf.add(hadoop_conf.read_properties(file), str(file))
