"""Parses TonY's command line by the rules of `gnu_parser`.

TonY silently ignored everything from the first unknown word on; here an unknown word is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from howdah.compat.gnu_parser import OptionTable, given_twice, option_uses, remove_quotes
from howdah.errors import Mistake
from howdah.spec.values import dataclass

OPTIONS = (
    *("executes", "task_params", "src_dir", "python_venv", "python_binary_path", "hdfs_classpath"),
    *("shell_env", "container_env", "conf", "conf_file", "sidecar_tensorboard_log_dir"),
)
REPEATED = ("shell_env", "container_env", "conf")
FLAGS = ("help", "debug")
_TABLE = OptionTable({name: name for name in (*OPTIONS, *FLAGS)}, FLAGS)
MODES = {
    **dict.fromkeys(("cluster", "com.linkedin.tony.cli.ClusterSubmitter", "com.linkedin.tony.TonyClient"), "cluster"),
    **dict.fromkeys(("local", "com.linkedin.tony.cli.LocalSubmitter"), "local"),
    **dict.fromkeys(("notebook", "com.linkedin.tony.cli.NotebookSubmitter"), "notebook"),
}


@dataclass
class TonyOptions:
    """The options of one command line."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """The values of each option, in their order."""
    flags: set[str] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)

    def first(self, name: str) -> str:
        """Return the effective value, "" if there is none: of an option that is given twice TonY used the first."""
        return self.values[name][0] if self.values.get(name) else ""

    def pairs(self, name: str) -> dict[str, str]:
        """Return the option's `k=v` pairs. The option may be repeated, and may have several pairs with commas between
        them."""
        given = (text for value in self.values.get(name, []) for text in split_pairs(value))
        return dict(parse_pair(text, f"--{name}", self.mistakes) for text in given)


def mode(argv: Sequence[str]) -> tuple[str, list[str]]:
    """Return the TonY submitter that is meant, and the other arguments."""
    if argv and argv[0] in MODES:
        return MODES[argv[0]], list(argv[1:])
    return "cluster", list(argv)


def parse_options(argv: Sequence[str]) -> TonyOptions:
    """Read the options; mistakes in them are in `mistakes`."""
    options = TonyOptions()
    for use in option_uses(list(argv), _TABLE):
        if use.name is None:
            dashed = use.word.startswith("-")
            problem = "is not an option of TonY" if dashed else "is not an option, and belongs to none"
            options.mistakes.append(Mistake(use.word, problem, _TABLE.nearest(use.word) if dashed else None))
        elif use.name in FLAGS:
            options.flags.add(use.name)
        elif use.values:
            options.values.setdefault(use.name, []).extend(map(remove_quotes, use.values))
        else:
            options.mistakes.append(Mistake(f"--{use.name}", "has no value"))
    for name, values in options.values.items():
        if name not in REPEATED and len(set(values)) > 1:
            options.mistakes.append(given_twice(name, values))
    return options


def parse_pair(text: str, place: str, mistakes: list[Mistake]) -> tuple[str, str]:
    """Return (name, value) of `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        mistakes.append(Mistake(place, f"is {text!r}, must be name=value"))
    return name.strip(), value


def split_pairs(value: str) -> list[str]:
    """Split `A=1,B=2` into two pairs, because TonY joined all variables by commas; `A=1,2` is one pair, of which TonY
    lost the 2."""
    return [part for part in re.split(r",(?=[^,=]+=)", value) if part.strip()]
