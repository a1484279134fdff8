"""XLearning's `xl-submit` and HBox's `hbox-submit`: the same options and keys, with some different defaults.

`options` reads the command line, `settings` merges the value of each key, and `roles`, `data` and `tensorboard` make
the parts of the job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from howdah.compat import Parsed
from howdah.compat.xlearning import data, roles, tensorboard
from howdah.compat.xlearning.app_types import IDLE_APP_TYPES
from howdah.compat.xlearning.options import MANY, OPTIONS, ParsedOptions, parse_options
from howdah.compat.xlearning.settings import PAGE, XLearningSettings, site_properties
from howdah.errors import SpecError
from howdah.spec import Environment, JobSpec, Master, Resources, Timeouts
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass

OPTION_NAMES = (*OPTIONS, *MANY)
PRIORITIES = ("DEFAULT", "VERY_LOW", "LOW", "NORMAL", "HIGH", "VERY_HIGH")


@dataclass(frozen=True)
class CommandVariant:
    """The differences between the two commands."""

    program: str
    """The name of the command."""
    prefix: str
    """The beginning of the keys of its configuration."""
    app_type: str
    """The application type if none is set."""
    splits_command_line: bool
    """Whether --launch-cmd is split at spaces; otherwise it is a line for a shell."""
    uses_strategies: bool
    """Whether TensorFlow jobs use distribution strategies by default."""
    memory_growth: Mapping[str, str]
    """The growth of a role's memory after a failure, as a share."""
    saved_output_prefix: str
    """The beginning of the names of saved outputs."""
    helper_resources: Resources
    """The size of a helper, which ran in the application master."""
    shows_tensorboard: bool
    """Whether TensorBoard was on by default."""
    fewer_workers: bool
    """Whether there are no more workers than files to read."""


XLEARNING = CommandVariant(
    program="xl-submit",
    prefix="xlearning",
    app_type="XLEARNING",
    splits_command_line=False,
    uses_strategies=False,
    memory_growth={"worker": "0.5", "ps": "0.2"},
    saved_output_prefix="/interResult_",
    helper_resources=Resources(1024, 1),
    shows_tensorboard=True,
    fewer_workers=True,
)
HBOX = CommandVariant(
    program="hbox-submit",
    prefix="hbox",
    app_type="HBOX",
    splits_command_line=True,
    uses_strategies=True,
    memory_growth={},
    saved_output_prefix="/interResult/interResult_",
    helper_resources=Resources(2048, 2),
    shows_tensorboard=False,
    fewer_workers=False,
)

# The option or key behind each place of the spec.
_OPTIONS = {
    "files": "--files, --cacheFile, --jars",
    "archives": "--archiveFiles, --cacheArchive",
    "directories": "--output, --board-logdir",
    "inputs": "--input",
    "outputs": "--output",
    "extend": "--user-path",
    "env": "--conf …container.env.NAME",
    "success": "container.maxFailures.rate",
    "port_range": "reserve.port.begin, reserve.port.end",
}
_KEYS = {
    "name": "app.name",
    "framework": "app.type",
    "queue": "app.queue",
    "priority": "app.priority",
    "retries": "app.max.attempts",
    "node_label": "job.labelname",
    "master.memory": "driver.memory",
    "environment.image": "docker.image.name",
    "board": "tf.board.log.dir",
    "board.tasks": "tf.board.worker.index",
    "timeouts.run": "job.exec.timeout",
}
_ROLE_KEYS = {
    "resources.memory": "memory",
    "resources.vcores": "cores",
    "resources.gpus": "gpus",
    "replicas": "num",
    "resources.growth": "mem.autoscale",
    "node_label": "nodeLabelExpression",
}
_MEMORY_KEYS = {f"roles.{role}.resources.memory": f"{role}.worker.memory" for role in ("chief", "evaluator")}


class XlSubmit:
    """Reads `howdah xl-submit …`, which has the meaning of `xl-submit …`; `environ` is this process's unless given."""

    variant = XLEARNING

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ

    def parse(self, argv: Sequence[str]) -> Parsed:
        settings = _merged(self.variant, parse_options(argv, self.variant.program), self.environ)
        kind = roles.kind_of(settings, self.variant.app_type, self.variant.uses_strategies)
        command = _command(settings, self.variant, kind.name)
        job_roles = roles.job_roles(settings, kind, command, self.variant.memory_growth, self.variant.helper_resources)
        is_idle = kind.name in IDLE_APP_TYPES
        directories = () if is_idle else data.directories(settings, self.variant.shows_tensorboard)
        job = JobSpec(
            roles={**job_roles.roles, **tensorboard.role(settings, kind.name)},
            name=settings.text("app.name", self.variant.prefix),
            framework=job_roles.framework,
            env={**settings.environment, **data.variables(settings), **roles.variables(settings, job_roles, kind)},
            extend=_path_lists(settings),
            files=data.files(settings),
            archives=data.archives(settings),
            inputs=data.inputs(settings, job_roles, kind.name, self.variant.fewer_workers),
            directories=directories,
            outputs=data.outputs(settings, job_roles, self.variant.saved_output_prefix),
            environment=Environment(image=_image(settings, kind.name)),
            board=tensorboard.tensorboard_settings(settings, job_roles, kind.name, self.variant.shows_tensorboard),
            success=job_roles.success,
            retries=max(0, settings.number("app.max.attempts", 1) - 1),
            queue=_queue(settings, self.variant),
            priority=_priority(settings),
            node_label=settings.text("job.labelname"),
            secrets={variable: f"env:{variable}" for variable in data.secrets(settings)},
            timeouts=_timeouts(settings),
            application_type=kind.name,
            master=_master(settings),
            port_range=_port_range(settings),
        )
        notes = (*settings.options.notes, *settings.notes, *settings.notes_on_ignored())
        parsed = Parsed(
            job,
            origins=_origins(settings, job),
            notes=notes,
            variables={**data.variables(settings), **data.secrets(settings)},
            conf_files=tuple(_cluster(settings)),
            same_hosts=settings.flag("host.local.enable"),
        )
        if settings.mistakes:
            raise SpecError(settings.mistakes)
        return parsed


class HboxSubmit(XlSubmit):
    """Reads `howdah hbox-submit …`, which has the meaning of `hbox-submit …`."""

    variant = HBOX


def _merged(variant: CommandVariant, options: ParsedOptions, environ: Mapping[str, str]) -> XLearningSettings:
    settings = XLearningSettings(options, mistakes=list(options.mistakes))
    file = f"{variant.prefix}-site.xml"
    settings.add_site(site_properties(variant.prefix, environ), file)
    settings.add_options(file, variant.program)
    settings.add_conf()
    settings.check()
    return settings


def _command(settings: XLearningSettings, variant: CommandVariant, kind: str) -> roles.Command:
    """Return the words at the end of the command line unchanged, or --launch-cmd as this command read it."""
    command, line = settings.options.command, settings.text("cmd")
    option = settings.where("cmd")
    if command and line:
        settings.wrong_at(option, f"is given, and a command at the end too, from {command[0]!r} on: keep one")
    if not command and not line and kind not in IDLE_APP_TYPES:
        taken = [f"--{name}" for name in MANY if len(settings.options.values.get(name, [])) > 1]
        hint = f" (an option like {taken[0]} takes every word up to the next option)" if taken else ""
        settings.wrong_at(option, f"is missing: give a command by it, or as the last words{hint}")
    if not line or command:
        return command
    if not variant.splits_command_line:
        if re.search(r"""["'\\$`;&|<>*?(){}]""", line):
            settings.notes.append(f"{option} runs as a shell line: quotes and $ count")
        return line
    if re.search(r"""["'\\$`;&|<>*?]""", line):
        settings.notes.append(f"{option} is split at spaces alone, as it was: for quotes, write the command at the end")
    return tuple(line.split())


def _queue(settings: XLearningSettings, variant: CommandVariant) -> str:
    if not settings.given("app.queue"):
        settings.notes.append(
            f"--queue isn't given: the cluster's default queue is used, where {variant.program} took your user name"
        )
    return settings.text("app.queue")


def _priority(settings: XLearningSettings) -> int | None:
    """Return the priority; both commands asked for NORMAL by default."""
    word = settings.text("app.priority", "NORMAL")
    if re.fullmatch("[0-9]{1,9}", word):
        return int(word)
    if word.upper() in PRIORITIES:
        return PRIORITIES.index(word.upper())
    hint = nearest(word.upper(), PRIORITIES)
    settings.wrong("app.priority", f"is {word!r}, must be one of {', '.join(PRIORITIES)}", hint)
    return None


def _path_lists(settings: XLearningSettings) -> Mapping[str, str]:
    """Return the path lists to which the user adds; the working directory is among the libraries' directories."""
    keys = ("user.ldlibrarypath", "mpi.extra.ld.lirbary.path", "horovod.extra.ld.lirbary.path")
    libraries, paths = [settings.text(key) for key in keys], [settings.text("user.path")]
    if settings.flag("mpi.install.dir.enable"):
        install = settings.text("mpi.install.dir", "/usr/local/openmpi/").rstrip("/")
        paths, libraries = [*paths, f"{install}/bin"], [*libraries, f"{install}/lib"]
    jars = [entry.partition("#")[0].rpartition("/")[2] for entry in settings.get_list("jars")]
    lists = {"PATH": paths, "LD_LIBRARY_PATH": ["./", *libraries], "CLASSPATH": ["./", *jars] if jars else []}
    return {name: ":".join(filter(None, entries)) for name, entries in lists.items() if any(entries)}


def _image(settings: XLearningSettings, kind: str) -> str:
    wanted = settings.choice("container.type") == "DOCKER"
    older = settings.text("container.mode").lower() == "docker"
    image = settings.text("docker.image.name") if wanted else settings.text("docker.executor.image") if older else ""
    image = image or (settings.text("digits.image-name") if kind in IDLE_APP_TYPES else "")
    if (wanted or older) and not image:
        settings.wrong("container.type", "is docker, and no --docker-image says which")
    if settings.given("docker.image.name") and not (wanted or older):
        settings.notes.append("--docker-image is ignored: --container-type isn't docker")
    host, port = settings.text("docker.registry.host"), settings.text("docker.registry.port")
    return f"{host}:{port}/{image}" if host and port and image else image


def _timeouts(settings: XLearningSettings) -> Timeouts:
    localise = settings.number("localresource.timeout", 0) / 1000
    run_s = settings.number("job.exec.timeout", 0) / 1000
    return Timeouts(run_s=run_s, localise_s=localise) if localise else Timeouts(run_s=run_s)


def _master(settings: XLearningSettings) -> Master:
    memory = settings.memory("driver.memory") if settings.given("driver.memory") else 0
    label = settings.text("am.nodeLabelExpression", settings.text("job.labelname"))
    return Master(memory, settings.number("driver.cores", 0), label)


def _port_range(settings: XLearningSettings) -> str:
    """Return the port range, with the commands' own default for an end that is not set."""
    if not settings.given("reserve.port.begin") and not settings.given("reserve.port.end"):
        return ""
    return f"{settings.number('reserve.port.begin', 20000)}-{settings.number('reserve.port.end', 30000)}"


def _cluster(settings: XLearningSettings) -> Iterator[str]:
    """Yield the configuration files of --cluster, which override this machine's own."""
    name = settings.text("cluster.name")
    found = name if name in settings.clusters else name.lower()  # HBox took it in small letters
    if name and found not in settings.clusters:
        known = f"known are {', '.join(settings.clusters)}" if settings.clusters else "none is known"
        hint = nearest(name, settings.clusters)
        settings.wrong("cluster.name", f"is {name!r}, but no {name}.conf.path says where it is; {known} ({PAGE})", hint)
    elif name:
        yield from (part.strip() for part in settings.clusters[found].split(",") if part.strip())


def _origins(settings: XLearningSettings, job: JobSpec) -> dict[str, str]:
    """Return the option or key behind each place of the spec."""
    found = {**_OPTIONS, **{place: settings.where(key) for place, key in _KEYS.items()}}
    for role in job.roles:
        kind = role if role in ("worker", "ps") else "worker"
        found[f"roles.{role}.command"] = settings.where("cmd")
        found |= {f"roles.{role}.{place}": settings.where(f"{kind}.{key}") for place, key in _ROLE_KEYS.items()}
    return {**found, **{place: settings.where(key) for place, key in _MEMORY_KEYS.items()}}
