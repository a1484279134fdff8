"""XLearning's `xl-submit` and HBox's `hbox-submit`: the same options and keys, with some different defaults.

`options` reads the command line, `settings` merges the value of each key, and `roles`, `data` and `tensorboard` make
the parts of the job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from howdah.compat import Parsed
from howdah.compat.xlearning import data, roles, site, tensorboard
from howdah.compat.xlearning.app_types import IDLE_APP_TYPES
from howdah.compat.xlearning.options import MANY, OPTIONS, ParsedOptions, parse_options
from howdah.compat.xlearning.settings import PAGE, XLearningSettings
from howdah.errors import SpecError
from howdah.spec import Environment, JobSpec, Master, Resources, Timeouts
from howdah.spec.validation import nearest

READ = (*OPTIONS, *MANY)
PRIORITIES = ("DEFAULT", "VERY_LOW", "LOW", "NORMAL", "HIGH", "VERY_HIGH")


@dataclass(frozen=True)
class CommandVariant:
    """What is different between the two commands."""

    program: str
    """The name of the command."""
    prefix: str
    """What its configuration's keys begin with."""
    app_type: str
    """The application type if none is set."""
    splits: bool
    """Whether --launch-cmd is split at spaces; otherwise it is a line for a shell."""
    strategy: bool
    """Whether TensorFlow jobs use distribution strategies by default."""
    growth: Mapping[str, str]
    """By how much the memory of a role grows after a failure, as a share."""
    saved: str
    """What the names of saved outputs begin with."""
    master: Resources
    """The size of what runs in the master's container there."""
    boards: bool
    """Whether TensorBoard was on by default."""
    fewer_workers: bool
    """There are no more workers than files to read."""


XLEARNING = CommandVariant(
    *("xl-submit", "xlearning", "XLEARNING"),
    splits=False,
    strategy=False,
    growth={"worker": "0.5", "ps": "0.2"},
    saved="/interResult_",
    master=Resources(1024, 1),
    boards=True,
    fewer_workers=True,
)
HBOX = CommandVariant(
    *("hbox-submit", "hbox", "HBOX"),
    splits=True,
    strategy=True,
    growth={},
    saved="/interResult/interResult_",
    master=Resources(2048, 2),
    boards=False,
    fewer_workers=False,
)


class XlSubmit:
    """Reads `howdah xl-submit …`, which means what `xl-submit …` meant; `environ` is this process's unless given."""

    variant = XLEARNING

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ

    def parse(self, argv: Sequence[str]) -> Parsed:
        settings = _gathered(self.variant, parse_options(argv, self.variant.program), self.environ)
        kind = roles.kind_of(settings, self.variant.app_type, self.variant.strategy)
        command = _command(settings, self.variant, kind.name)
        gang = roles.gang(settings, kind, command, self.variant.growth, self.variant.master)
        job = JobSpec(
            roles={**gang.roles, **tensorboard.role(settings, kind.name)},
            name=settings.text("app.name", self.variant.prefix),
            framework=gang.framework,
            env={**settings.environment, **data.variables(settings), **roles.variables(settings, gang, kind)},
            extend=_extend(settings),
            files=data.files(settings),
            archives=data.archives(settings),
            inputs=data.inputs(settings, gang, kind.name, self.variant.fewer_workers),
            directories=() if kind.name in IDLE_APP_TYPES else data.directories(settings, self.variant.boards),
            outputs=data.outputs(settings, gang, self.variant.saved),
            environment=Environment(image=_image(settings, kind.name)),
            board=tensorboard.board(settings, gang, kind.name, self.variant.boards),
            success=gang.success,
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
        clusters, beside = tuple(_cluster(settings)), data.client_variables(settings)
        if settings.mistakes:
            raise SpecError(settings.mistakes)
        origins = dict(_origins(settings, job))
        return Parsed(job, origins, notes, beside, clusters, settings.flag("host.local.enable"))


class HboxSubmit(XlSubmit):
    """Reads `howdah hbox-submit …`, which means what `hbox-submit …` meant."""

    variant = HBOX


def _gathered(door: CommandVariant, words: ParsedOptions, environ: Mapping[str, str]) -> XLearningSettings:
    settings = XLearningSettings(words, mistakes=list(words.mistakes))
    file = f"{door.prefix}-site.xml"
    settings.add_site(site.properties(door.prefix, environ), file)
    settings.add_options(file, door.program)
    settings.add_conf()
    settings.check()
    return settings


def _command(settings: XLearningSettings, door: CommandVariant, kind: str) -> roles.Command:
    """Return the words at the end of the command line as they are, or --launch-cmd as this command read it."""
    words, line = settings.options, settings.text("cmd")
    option = settings.where("cmd")
    if words.command and line:
        settings.wrong_at(option, f"is given, and a command at the end too, from {words.command[0]!r} on: keep one")
    if not words.command and not line and kind not in IDLE_APP_TYPES:
        taken = [f"--{name}" for name in MANY if len(words.values.get(name, [])) > 1]
        hint = f" (an option like {taken[0]} takes every word up to the next option)" if taken else ""
        settings.wrong_at(option, f"is missing: give a command by it, or as the last words{hint}")
    if not line or words.command:
        return words.command
    if not door.splits:
        if re.search(r"""["'\\$`;&|<>*?(){}]""", line):
            settings.notes.append(f"{option} runs as a shell line: quotes and $ count")
        return line
    if re.search(r"""["'\\$`;&|<>*?]""", line):
        settings.notes.append(f"{option} is split at spaces alone, as it was: for quotes, write the command at the end")
    return tuple(line.split())


def _queue(settings: XLearningSettings, door: CommandVariant) -> str:
    if not settings.given("app.queue"):
        settings.notes.append(
            f"--queue isn't given: the cluster's default queue is used, where {door.program} took your user name"
        )
    return settings.text("app.queue")


def _priority(settings: XLearningSettings) -> int | None:
    """Return the priority; both commands asked for NORMAL by default."""
    word = settings.text("app.priority", "NORMAL")
    if word.isdigit():
        return int(word)
    if word.upper() in PRIORITIES:
        return PRIORITIES.index(word.upper())
    hint = nearest(word.upper(), PRIORITIES)
    settings.wrong("app.priority", f"is {word!r}, must be one of {', '.join(PRIORITIES)}", hint)
    return None


def _extend(settings: XLearningSettings) -> Mapping[str, str]:
    """Return the lists to which the user adds; the working directory is among the libraries' directories."""
    libraries = [settings.text("user.ldlibrarypath"), settings.text("mpi.extra.ld.lirbary.path")]
    libraries.append(settings.text("horovod.extra.ld.lirbary.path"))
    paths = [settings.text("user.path")]
    if settings.flag("mpi.install.dir.enable"):
        install = settings.text("mpi.install.dir", "/usr/local/openmpi/").rstrip("/")
        paths, libraries = [*paths, f"{install}/bin"], [*libraries, f"{install}/lib"]
    jars = [entry.partition("#")[0].rpartition("/")[2] for entry in settings.listed("jars")]
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
    """Return the configuration files of --cluster, which are laid over this machine's own."""
    name = settings.text("cluster.name")
    if name and name not in settings.clusters:
        known = f"known are {', '.join(settings.clusters)}" if settings.clusters else "none is known"
        hint = nearest(name, settings.clusters)
        settings.wrong("cluster.name", f"is {name!r}, but no {name}.conf.path says where it is; {known} ({PAGE})", hint)
    elif name:
        yield from (part.strip() for part in settings.clusters[name].split(",") if part.strip())


def _origins(settings: XLearningSettings, job: JobSpec) -> Iterator[tuple[str, str]]:
    """Return the option or key behind each place of the spec."""
    for place, key in (("name", "app.name"), ("framework", "app.type"), ("queue", "app.queue")):
        yield place, settings.where(key)
    yield "files", "--files, --cacheFile, --jars"
    yield from (("archives", "--archiveFiles, --cacheArchive"), ("directories", "--output, --board-logdir"))
    yield from (("inputs", "--input"), ("outputs", "--output"), ("priority", settings.where("app.priority")))
    yield from (("retries", settings.where("app.max.attempts")), ("node_label", settings.where("job.labelname")))
    yield from (("master.memory", settings.where("driver.memory")), ("extend", "--user-path"))
    yield from (("env", "--conf …container.env.NAME"), ("environment.image", settings.where("docker.image.name")))
    yield from (("board", settings.where("tf.board.log.dir")), ("board.tasks", settings.where("tf.board.worker.index")))
    yield from (("timeouts.run", settings.where("job.exec.timeout")), ("success", "container.maxFailures.rate"))
    yield "port_range", "reserve.port.begin, reserve.port.end"
    sizes = {"resources.memory": "memory", "resources.vcores": "cores", "resources.gpus": "gpus", "replicas": "num"}
    for role in job.roles:
        yield f"roles.{role}.command", settings.where("cmd")
        key = role if role in ("worker", "ps") else "worker"
        for place, size in sizes.items():
            yield f"roles.{role}.{place}", settings.where(f"{key}.{size}")
        yield f"roles.{role}.resources.growth", settings.where(f"{key}.mem.autoscale")
        yield f"roles.{role}.node_label", settings.where(f"{key}.nodeLabelExpression")
    yield "roles.chief.resources.memory", settings.where("chief.worker.memory")
    yield "roles.evaluator.resources.memory", settings.where("evaluator.worker.memory")
