"""The command line of `xl-submit` and `hbox-submit`, taken apart by their parser's rules.

The rules, which their users' scripts rely on: an option is accepted by its long name or its camel-case short one, with
one dash or two; one pair of double quotes around a value is dropped; some take every word up to the next option; of an
option given twice the first counts; the first word that is no option starts the user's command, which is kept word for
word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from howdah.compat import unquoted
from howdah.errors import Mistake
from howdah.spec.validation import nearest

OPTIONS = {
    "app-name": "app.name",
    "app-type": "app.type",
    "cluster": "cluster.name",
    "driver-memory": "driver.memory",
    "driver-cores": "driver.cores",
    "am-memory": "driver.memory",
    "am-cores": "driver.cores",
    **{f"{role}-{size}": f"{role}.{size}" for role in ("worker", "ps") for size in ("memory", "cores", "gpus", "num")},
    "chiefworker-memory": "chief.worker.memory",
    "evaluatorworker-memory": "evaluator.worker.memory",
    "duration": "vpc.duration",
    "files": "files",
    "archiveFiles": "archiveFiles",
    "jars": "jars",
    "cacheFile": "cacheFile",
    "cacheArchive": "cacheArchive",
    "input-strategy": "input.strategy",
    "output-strategy": "output.strategy",
    "inputformat-enable": "input.stream",
    "outputformat-enable": "out.stream",
    "inputformat": "inputformat.class",
    "outputformat": "outputformat.class",
    "inputformat-shuffle": "input.stream.shuffle",
    "stream-epoch": "stream.epoch",
    "isRenameInputFile": "inputfile.rename",
    "create-containerid-dir": "createcontainerid.dir",
    "output-index": "output.index",
    "tf-evaluator": "tf.evaluator",
    "board-enable": "tf.board.enable",
    "board-index": "tf.board.worker.index",
    "board-logdir": "tf.board.log.dir",
    "board-reloadinterval": "tf.board.reload.interval",
    "board-historydir": "tf.board.history.dir",
    "board-modelpb": "board.modelpb",
    "board-cacheTimeout": "board.cache.timeout",
    "user-path": "user.path",
    "user-ldlibrarypath": "user.ldlibrarypath",
    "user-classpath-first": "user.classpath.first",
    "host-local-enable": "host.local.enable",
    "container-type": "container.type",
    "docker-image": "docker.image.name",
    "priority": "app.priority",
    "queue": "app.queue",
    "launch-cmd": "cmd",
    "hbox-cmd": "cmd",
}
"""Every option with the key that says the same, without its prefix; a key of no dot is the option's alone."""
MANY = ("conf", "input", "output", "s3input", "s3output")
"""They take every word up to the next option, and may be repeated."""


def _camel(name: str) -> str:
    return re.sub(r"-([a-z])", lambda match: match[1].upper(), name)


_LINE_END = "\\"
"""A word of the command line where a script ends behind the backslash at the end of its last line."""
# Their short names, where these are not the long ones in camel-case; the last two are of a fork for GPUs.
_SHORT = {
    "chiefWorkerMemory": "chiefworker-memory",
    "evaluatorWorkerMemory": "evaluatorworker-memory",
    "inputFormatClass": "inputformat",
    "outputFormatClass": "outputformat",
    "boardReloadInterval": "board-reloadinterval",
    "boardLogDir": "board-logdir",
    "boardHistoryDir": "board-historydir",
    "boardModelPB": "board-modelpb",
    "userLDLIBRARYPATH": "user-ldlibrarypath",
    **dict.fromkeys(("worker-gcores", "workerGcores"), "worker-gpus"),
    **dict.fromkeys(("ps-gcores", "psGcores"), "ps-gpus"),
}
_NAMES = {**{spelling: name for name in (*OPTIONS, *MANY) for spelling in (name, _camel(name))}, **_SHORT}


@dataclass
class ParsedOptions:
    """The command line, taken apart: what each option was given, in order, and the user's command."""

    values: dict[str, list[str]] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def parse_options(argv: Sequence[str], program: str) -> ParsedOptions:
    """The words of `argv`; `program` is what the command is called in messages."""
    words, rest = ParsedOptions(), list(argv)
    while rest and rest != [_LINE_END]:
        name, glued = _option(rest[0])
        if name is None:
            if rest[0].startswith("-"):
                words.mistakes.append(_unknown(rest[0], program))
            words.command = tuple(rest)
            break
        rest.pop(0)
        if glued is not None:
            _given(words, name, [glued], program)
        else:
            _given(words, name, list(_values(name, rest, words, program)), program)
    return words


def _values(name: str, rest: list[str], words: ParsedOptions, program: str) -> Sequence[str]:
    """Takes the option's values from `rest`."""
    values: list[str] = []
    while rest and rest != [_LINE_END] and (not values or name in MANY) and _option(rest[0])[0] is None:
        if name == "conf" and values and "=" not in rest[0]:
            break  # it can't be a setting: the command begins, as in HBox's own example for LightLDA
        if name in MANY and rest[0].startswith("--"):
            words.mistakes.append(_unknown(rest[0], program))
        values.append(rest.pop(0))
    return values


def _given(words: ParsedOptions, name: str, values: list[str], program: str) -> None:
    values = [unquoted(value) for value in values]
    before = words.values.get(name)
    if not values:
        words.mistakes.append(Mistake(f"--{name}", "has no value"))
    elif before and name not in MANY:
        if before != values:
            words.notes.append(f"--{name} is given twice: the first, {before[0]!r}, counts, as {program} had it")
    else:
        words.values.setdefault(name, []).extend(values)


def _unknown(word: str, program: str) -> Mistake:
    known = nearest(word.lstrip("-").partition("=")[0], [*OPTIONS, *MANY])
    return Mistake(word.partition("=")[0], f"is no option of {program}", known and f"--{known}")


def _option(word: str) -> tuple[str | None, str | None]:
    """The long name of the option that `word` is, and the value after its `=`."""
    if not word.startswith("-"):
        return None, None
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    return _NAMES.get(name), value if equals else None
