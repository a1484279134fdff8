"""Parses the options of Submarine's `job run` by the rules of `gnu_parser`.

A word that belongs to no option is ignored, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from howdah.compat.gnu_parser import OptionTable, given_twice, option_uses, remove_quotes
from howdah.errors import Mistake
from howdah.spec.values import dataclass

ROLES = {"worker": "num_workers", "ps": "num_ps", "scheduler": "num_schedulers"}
"""The roles that have a size and a command of their own, with the option for their number."""
OF_ROLE = ("resources", "launch_cmd", "docker_image")
BELOW_ROLE = ("env", "localization", "mount")
"""Options that only a role of a YAML file has, such as `worker.env`."""
SINGLE = (
    *("name", "framework", "docker_image", "input_path", "checkpoint_path", "saved_model_path", "queue"),
    *("keytab", "principal", "f", *ROLES.values(), *(f"{role}_{what}" for role in ROLES for what in OF_ROLE)),
    *("tensorboard_resources", "tensorboard_docker_image"),
)
REPEATED = ("quicklink", "env", "localization", "conf")
FLAGS = ("tensorboard", "distribute_keytab", "insecure", "wait_job_finish", "verbose", "legacy")
OPTIONS = (*SINGLE, *REPEATED, *FLAGS)
_TABLE = OptionTable({name: name for name in OPTIONS}, FLAGS, flags_take_truth=True)
PAGE = "docs/coming-from-submarine.md"


@dataclass
class SubmarineOptions:
    """The options of one `job run`."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """The values by option; a flag has none."""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The key and line of each option that is set in the YAML file."""
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences to show."""
    runtime: str = "service"
    """`service` or `tony`."""
    misread: bool = False
    """Whether the file has a key that is no option."""

    def given(self, name: str) -> bool:
        """Return whether the option is set, perhaps to nothing."""
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Return the option's first value."""
        return (self.values.get(name) or [default])[0] or default

    def get_list(self, name: str) -> list[str]:
        """Return all values of an option that may be repeated."""
        return self.values.get(name, [])

    def of_role(self, role: str) -> list[str]:
        """Return the options of one kind of task that are set, including those below its role in a YAML file."""
        names = (ROLES[role], *(f"{role}_{what}" for what in OF_ROLE), *(f"{role}.{what}" for what in BELOW_ROLE))
        return [name for name in names if self.given(name)]

    def number(self, name: str, default: int) -> int:
        """Return a whole number that isn't negative."""
        text = self.text(name, str(default)).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            self.wrong(name, f"is {text!r}, must be a whole number")
            return default
        return int(text)

    def where(self, name: str) -> str:
        """Return the option, or the key and line of the YAML file that set it."""
        place, origin = self.places.get(name, (f"--{name}", ""))
        return f"{place}, {origin}" if origin else place

    def absent(self, name: str, problem: str) -> None:
        """Add the mistake that the option is not set, unless some name was misspelt: that may be this option."""
        if not self.misread:
            self.wrong(name, f"is absent{problem}")

    def wrong(self, name: str, problem: str, near: str | None = None) -> None:
        """Add a mistake in the option's value."""
        place, origin = self.places.get(name, (f"--{name}", ""))
        mistake = Mistake(place, problem, near, origin or None)
        if mistake not in self.mistakes:
            self.mistakes.append(mistake)


def parse_options(argv: Sequence[str]) -> SubmarineOptions:
    """Read the words after `job run`; mistakes in them are in `mistakes`."""
    options, ignored = SubmarineOptions(), []
    for use in option_uses(list(argv), _TABLE):
        if use.name is None and use.word.startswith("-"):
            name = use.word.lstrip("-").partition("=")[0]
            options.mistakes.append(Mistake(f"--{name}", "is not an option of job run", _TABLE.nearest(use.word)))
        elif use.name is None:
            ignored.append(use.word)
        elif use.name in FLAGS:
            options.values[use.name] = []
            # Submarine's own scripts write `--tensorboard true`.
            if (value := "".join(use.values)).lower() not in ("", "true"):
                options.wrong(use.name, f"is {value!r}, but takes no value: to switch it off, leave it out")
        elif use.values:
            options.values.setdefault(use.name, []).extend(map(remove_quotes, use.values))
        else:
            options.wrong(use.name, "has no value")
    if ignored:
        options.notes.append(f"{', '.join(map(repr, ignored))}: belongs to no option, and is ignored, as it was")
    options.mistakes += [
        given_twice(name, options.get_list(name)) for name in SINGLE if len(set(options.get_list(name))) > 1
    ]
    return options


def kind_of_task(role: str) -> str:
    """Return the kind of task of a role, by its name in the options."""
    return {"master": "worker", "server": "ps"}.get(role, role)
