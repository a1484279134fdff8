"""Parses the command line of `xl-submit` and `hbox-submit` by the rules of `gnu_parser`.

Users' scripts rely on three more rules: an option has a long name and a short one in camel case; if an option is given
twice, the first one counts; the first word that is no option begins the user's command, which is kept word for word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from howdah.compat.gnu_parser import OptionTable, option_uses, remove_quotes
from howdah.errors import Mistake
from howdah.spec.values import dataclass

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
"""The equivalent key of each option, without its prefix; a key without a dot is not a configuration key."""
MANY = ("conf", "input", "output", "s3input", "s3output")
"""Options that take every word up to the next option, and may be repeated."""
_END = "--"
"""The word that separates options and command in some scripts."""
_LINE_END = "\\"
"""The last word of the command line of a script whose last line ends in a backslash."""
# Short names that are not the long ones in camel case; the last two lines are of a fork for GPUs.
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
_TABLE = OptionTable(
    {
        **{name: name for name in (*OPTIONS, *MANY)},
        **{re.sub(r"-([a-z])", lambda match: match[1].upper(), name): name for name in OPTIONS},
        **_SHORT,
    },
    multi_valued=MANY,
    # A word without `=` begins the command, as in HBox's own example for LightLDA.
    assignments=("conf",),
)


@dataclass
class ParsedOptions:
    """The options and the user's command of one command line."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """The values of each option, in their order."""
    command: tuple[str, ...] = ()
    """The user's command."""
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences to show about words whose meaning is not what it seems."""


def parse_options(argv: Sequence[str], program: str) -> ParsedOptions:
    """Read the words of `argv`; `program` is the name of the command in messages."""
    ends_with_backslash = list(argv[-1:]) == [_LINE_END]
    rest, parsed = list(argv[:-1] if ends_with_backslash else argv), ParsedOptions()
    for use in option_uses(rest, _TABLE):
        if use.name is None:
            if use.word.startswith("-") and use.word != _END:
                parsed.mistakes.append(_unknown_option(use.word, program))
            first = () if use.word == _END else (use.word,)
            parsed.command = (*first, *rest, *([_LINE_END] if ends_with_backslash else []))
            break
        if use.name in MANY and not use.glued:
            parsed.mistakes += [_unknown_option(word, program) for word in use.values if word.startswith("--")]
        values = [remove_quotes(value) for value in use.values]
        earlier = parsed.values.get(use.name)
        if not values:
            parsed.mistakes.append(Mistake(f"--{use.name}", "has no value"))
        elif not earlier or use.name in MANY:
            parsed.values.setdefault(use.name, []).extend(values)
        elif earlier != values:
            parsed.notes.append(f"--{use.name} is given twice: the first, {earlier[0]!r}, counts, as {program} had it")
    return parsed


def _unknown_option(word: str, program: str) -> Mistake:
    return Mistake(word.partition("=")[0], f"is not an option of {program}", _TABLE.nearest(word))
