"""XLearning's `xl-submit` (HBox's `hbox-submit`): its submit options, read by its parser's rules.

The rules, which its users' scripts rely on: an option is accepted by its long name or its camel-case short one, with
one dash or two; --input and --output take every word up to the next option; the first word that is no option starts
the user's command, which is kept word for word. Memory is in MB, or ends in G or M.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from howdah.dialects import Parsed
from howdah.errors import Mistake, SpecError
from howdah.spec import Input, JobSpec, Output, Resources, Role
from howdah.spec.check import nearest

SIZES = ("memory", "num", "cores", "gpus")
READ = (
    *("app-type", "app-name", "input", "output", "files", "cacheFile", "cacheArchive", "launch-cmd", "queue"),
    *("priority", *(f"{role}-{size}" for role in ("worker", "ps") for size in SIZES)),
)
# Options of theirs that are not read yet, with the value that asks for nothing, where there is one.
NOT_YET = {
    "input-strategy": ("DOWNLOAD",),
    "output-strategy": ("UPLOAD",),
    **dict.fromkeys(("board-enable", "tf-evaluator", "inputformat-enable", "outputformat-enable"), ("false",)),
    **dict.fromkeys(("inputformat-shuffle", "isRenameInputFile", "host-local-enable"), ("false",)),
    "create-containerid-dir": ("true",),
    "output-index": ("-1",),
    "container-type": ("yarn",),
    **dict.fromkeys(("am-memory", "am-cores", "driver-memory", "driver-cores", "duration", "cluster", "conf"), ()),
    **dict.fromkeys(("chiefworker-memory", "evaluatorworker-memory", "archiveFiles", "jars", "docker-image"), ()),
    **dict.fromkeys(("s3input", "s3output", "inputformat", "outputformat", "stream-epoch"), ()),
    **dict.fromkeys(("board-index", "board-logdir", "board-reloadinterval", "board-historydir"), ()),
    **dict.fromkeys(("board-modelpb", "board-cacheTimeout", "user-path", "user-ldlibrarypath"), ()),
    **dict.fromkeys(("user-classpath-first", "hbox-cmd"), ()),
}
MANY = ("input", "output", "conf", "s3input", "s3output")
FRAMEWORKS = {"TENSORFLOW": "tensorflow", "DISTTORCH": "pytorch"}
# They need a process of theirs beside the gang (a scheduler, a tracker, mpiexec); run without, they would stand still.
TYPES_NOT_YET = (
    *("TENSOR2TENSOR", "MXNET", "XFLOW", "DISTXGBOOST", "DISTLIGHTGBM", "DISTLIGHTLDA", "LIGHTLDA", "XDL"),
    *("MPI", "TENSORNET", "HOROVOD", "VPC", "DIGITS"),
)
PRIORITIES = ("DEFAULT", "VERY_LOW", "LOW", "NORMAL", "HIGH", "VERY_HIGH")


def _camel(name: str) -> str:
    return re.sub(r"-([a-z])", lambda match: match[1].upper(), name)


_NAMES = {spelling: name for name in (*READ, *NOT_YET) for spelling in (name, _camel(name))}


@dataclass
class _Words:
    """The command line, taken apart: values by option, and the user's command."""

    values: dict[str, list[str]] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    mistakes: list[Mistake] = field(default_factory=list)

    def last(self, name: str, default: str = "") -> str:
        return self.values[name][-1] if self.values.get(name) else default

    def wrong(self, name: str, problem: str, hint: str | None = None) -> None:
        self.mistakes.append(Mistake(f"--{name}", problem, hint))

    def number(self, name: str, default: int) -> int:
        text = self.last(name)
        if text and not re.fullmatch(r"[+-]?\d+", text):
            self.wrong(name, f"is {text!r}, must be a whole number")
            return default
        return int(text) if text else default

    def memory(self, name: str) -> int:
        match = re.fullmatch(r"([+-]?\d+)([GgMm]?)", self.last(name, "1024"))
        if not match:
            self.wrong(name, f"is {self.last(name)!r}, must be a whole number of MB, or end in G or M")
            return 1024
        return int(match[1]) * (1024 if match[2] in ("G", "g") else 1)


class XlSubmit:
    """`howdah xl-submit …` means what `xl-submit …` meant."""

    def parse(self, argv: Sequence[str]) -> Parsed:
        words = _taken_apart(argv)
        _refuse_not_yet(words)
        notes: list[str] = []
        kind = words.last("app-type", "XLEARNING").strip().upper()
        if kind in TYPES_NOT_YET:
            known = ", ".join(FRAMEWORKS)
            words.wrong("app-type", f"is {kind}, which isn't supported yet; {known} are, and types without a cluster")
        elif kind not in (*FRAMEWORKS, "XLEARNING", "HBOX"):
            notes.append(f"--app-type {kind} has no variables of its own: its tasks get HOWDAH_INDEX, HOWDAH_WORLD, …")
        job = JobSpec(
            roles=_roles(words, _command(words, notes), kind, notes),
            name=words.last("app-name").strip() or "xlearning",
            framework=FRAMEWORKS.get(kind, "generic"),
            files=(*_listed(words, "files"), *_on_cluster(words, "cacheFile")),
            archives=tuple(_on_cluster(words, "cacheArchive")),
            inputs=_inputs(words),
            outputs=tuple(Output(path=path, source=to) for path, to in _paths(words, "output")),
            queue=words.last("queue").strip(),
            priority=_priority(words),
        )
        if not job.queue:
            notes.append(
                "--queue isn't given: the cluster's default queue is used, where xl-submit took your user name"
            )
        if words.mistakes:
            raise SpecError(words.mistakes)
        return Parsed(job, _origins(job), tuple(notes))


def _taken_apart(argv: Sequence[str]) -> _Words:
    words, rest = _Words(), list(argv)
    while rest:
        name, glued = _option(rest[0])
        if name is None:
            if rest[0].startswith("-"):
                known = nearest(rest[0].lstrip("-"), READ)
                words.mistakes.append(Mistake(rest[0], "is no option of xl-submit", known and f"--{known}"))
            words.command = tuple(rest)
            break
        rest.pop(0)
        values = [glued] if glued is not None else []
        while rest and (not values or (name in MANY and glued is None)) and _option(rest[0])[0] is None:
            values.append(rest.pop(0))
        if not values:
            words.wrong(name, "has no value")
        words.values.setdefault(name, []).extend(values)
    return words


def _option(word: str) -> tuple[str | None, str | None]:
    """The long name of the option that `word` is, and the value after its `=`."""
    if not word.startswith("-"):
        return None, None
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    return _NAMES.get(name), value if equals else None


def _refuse_not_yet(words: _Words) -> None:
    for name, harmless in NOT_YET.items():
        for value in words.values.get(name, []):
            if value.lower() not in [word.lower() for word in harmless]:
                allowed = f"; only {' or '.join(harmless)} is" if harmless else ""
                words.wrong(name, f"{value!r} isn't supported yet{allowed}")
                break


def _command(words: _Words, notes: list[str]) -> str | tuple[str, ...]:
    """A line for the shell from --launch-cmd, or the words at the end as they are."""
    line = words.last("launch-cmd")
    if words.command and line:
        words.wrong("launch-cmd", f"is given, and a command at the end too, from {words.command[0]!r} on: keep one")
    if not words.command and not line.strip():
        taken = [f"--{name}" for name in ("input", "output") if len(words.values.get(name, [])) > 1]
        hint = f" (an option like {taken[0]} takes every word up to the next option)" if taken else ""
        words.wrong("launch-cmd", f"is missing: give a command by it, or as the last words{hint}")
    if re.search(r"""["'\\$`;&|<>*?(){}]""", line):
        notes.append("--launch-cmd runs as a shell line: quotes and $ count, where xl-submit split it at spaces")
    return words.command or line


def _roles(words: _Words, command: str | tuple[str, ...], kind: str, notes: list[str]) -> Mapping[str, Role]:
    roles = {"worker": _role(words, "worker", command, 1)}
    servers = _role(words, "ps", command, 0)
    if kind == "TENSORFLOW" and servers.replicas:
        roles["ps"] = servers
    elif kind != "TENSORFLOW" and any(f"ps-{size}" in words.values for size in SIZES):
        notes.append(f"--ps-… is ignored: {kind} has no parameter servers")
    return roles


def _role(words: _Words, name: str, command: str | tuple[str, ...], replicas: int) -> Role:
    return Role(
        command=command,
        replicas=words.number(f"{name}-num", replicas),
        resources=Resources(
            memory_mib=words.memory(f"{name}-memory"),
            vcores=words.number(f"{name}-cores", 1),
            gpus=words.number(f"{name}-gpus", 0),
        ),
    )


def _listed(words: _Words, name: str) -> list[str]:
    return [part.strip() for value in words.values.get(name, [])[-1:] for part in value.split(",") if part.strip()]


def _on_cluster(words: _Words, name: str) -> list[str]:
    """Files of the cluster's: a relative path would be looked for on this machine."""
    entries = _listed(words, name)
    for entry in entries:
        if "://" not in entry and not entry.startswith("/"):
            words.wrong(name, f"is {entry!r}, must be a path on the cluster: /… or hdfs://…")
    return entries


def _paths(words: _Words, option: str) -> list[tuple[str, str]]:
    """(path, local directory) of every `path#directory`."""
    pairs = [value.partition("#") for value in words.values.get(option, [])]
    return [(path.strip(), directory.strip() or option) for path, _, directory in pairs]


def _inputs(words: _Words) -> tuple[Input, ...]:
    """One input a directory: those that share one are dealt out together."""
    together: dict[str, list[str]] = {}
    for paths, to in _paths(words, "input"):
        together.setdefault(to, []).extend(path.strip() for path in paths.split(",") if path.strip())
    return tuple(Input(path=tuple(paths) if len(paths) != 1 else paths[0], to=to) for to, paths in together.items())


def _priority(words: _Words) -> int | None:
    word = words.last("priority").strip()
    if not word or word.isdigit():
        return int(word) if word else None
    if word.upper() in PRIORITIES:
        return PRIORITIES.index(word.upper())
    words.wrong("priority", f"is {word!r}, must be one of {', '.join(PRIORITIES)}", nearest(word.upper(), PRIORITIES))
    return None


def _origins(job: JobSpec) -> dict[str, str]:
    """Which option says what is at a place of the spec."""
    origins = {"name": "--app-name", "framework": "--app-type", "files": "--files", "archives": "--cacheArchive"}
    origins |= {"inputs": "--input", "outputs": "--output", "queue": "--queue", "priority": "--priority"}
    for role in job.roles:
        origins |= {
            f"roles.{role}.command": "--launch-cmd",
            f"roles.{role}.replicas": f"--{role}-num",
            f"roles.{role}.resources.memory": f"--{role}-memory",
            f"roles.{role}.resources.vcores": f"--{role}-cores",
            f"roles.{role}.resources.gpus": f"--{role}-gpus",
        }
    return origins
