"""`job run`'s options, taken apart as its parser (commons-cli's GnuParser) does it, and what each is set to.

The rules: one dash or two, `--x v` or `--x=v`; one pair of double quotes around a value is dropped; a word that belongs
to no option is passed over, which is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from howdah.compat import unquoted
from howdah.errors import Mistake
from howdah.spec.validation import nearest

ROLES = {"worker": "num_workers", "ps": "num_ps", "scheduler": "num_schedulers"}
"""The roles that have a size and a command of their own, and the option that says how many."""
OF_ROLE = ("resources", "launch_cmd", "docker_image")
BELOW_ROLE = ("env", "localization", "mount")
"""What a role of a YAML file may have besides, as `worker.env`."""
SINGLE = (
    *("name", "framework", "docker_image", "input_path", "checkpoint_path", "saved_model_path", "queue"),
    *("keytab", "principal", "f", *ROLES.values(), *(f"{role}_{what}" for role in ROLES for what in OF_ROLE)),
    *("tensorboard_resources", "tensorboard_docker_image"),
)
REPEATED = ("quicklink", "env", "localization", "conf")
FLAGS = ("tensorboard", "distribute_keytab", "insecure", "wait_job_finish", "verbose", "legacy")
OPTIONS = (*SINGLE, *REPEATED, *FLAGS)
PAGE = "docs/coming-from-submarine.md"


@dataclass
class SubmarineOptions:
    """Values by option, and for those of a YAML file their key and line; `runtime` is `service` or `tony`. `misread`:
    something in them was no option, or no key."""

    values: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runtime: str = "service"
    misread: bool = False

    def given(self, name: str) -> bool:
        """Whether somebody has set it, be it to nothing."""
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Its value."""
        return (self.values.get(name) or [default])[0] or default

    def listed(self, name: str) -> list[str]:
        """All values of an option that may be repeated."""
        return self.values.get(name, [])

    def of_role(self, role: str) -> list[str]:
        """The options of one kind of task that are given, those below its role in a YAML file among them."""
        names = (ROLES[role], *(f"{role}_{what}" for what in OF_ROLE), *(f"{role}.{what}" for what in BELOW_ROLE))
        return [name for name in names if self.given(name)]

    def number(self, name: str, default: int) -> int:
        """A whole number that isn't negative."""
        text = self.text(name, str(default)).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            self.wrong(name, f"is {text!r}, must be a whole number")
            return default
        return int(text)

    def where(self, name: str) -> str:
        """The words it was set with."""
        place, origin = self.places.get(name, (f"--{name}", ""))
        return f"{place}, {origin}" if origin else place

    def absent(self, name: str, problem: str) -> None:
        """It isn't given; of one that was misspelt that is no news."""
        if not self.misread:
            self.wrong(name, f"is absent{problem}")

    def wrong(self, name: str, problem: str, near: str | None = None) -> None:
        """A mistake in the value of this option."""
        place, origin = self.places.get(name, (f"--{name}", ""))
        mistake = Mistake(place, problem, near, origin or None)
        if mistake not in self.mistakes:
            self.mistakes.append(mistake)


def parse_options(argv: Sequence[str]) -> SubmarineOptions:
    """Read the words after `job run`; what is wrong with them is in `mistakes`."""
    options, rest, passed_over = SubmarineOptions(), list(argv), []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            passed_over.append(word)
        elif name not in OPTIONS:
            near = nearest(name, OPTIONS)
            options.mistakes.append(Mistake(f"--{name}", "is no option of job run", near and f"--{near}"))
        elif name in FLAGS:
            options.values[name] = []
            _drop_truth(options, name, value if equals else "", rest)
        elif equals or (rest and not _is_option(rest[0])):
            options.values.setdefault(name, []).append(unquoted(value if equals else rest.pop(0)))
        else:
            options.wrong(name, "has no value")
    if passed_over:
        options.notes.append(
            f"{', '.join(map(repr, passed_over))}: belongs to no option, and is passed over, as it was"
        )
    for name in SINGLE:
        if len(set(options.listed(name))) > 1:
            options.wrong(name, f"is given twice: {', '.join(map(repr, options.listed(name)))}. Keep one")
    return options


def _drop_truth(options: SubmarineOptions, name: str, value: str, rest: list[str]) -> None:
    """Their own scripts write `--tensorboard true`."""
    if not value and rest and rest[0].lower() in ("true", "false"):
        value = rest.pop(0)
    if value.lower() not in ("", "true"):
        options.wrong(name, f"is {value!r}, but takes no value: to switch it off, leave it out")


def _is_option(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-").partition("=")[0] in OPTIONS
