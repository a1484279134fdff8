"""The value of each key: the site file, then options, then --conf; a later source overrides an earlier one.

A value remembers the words with which it was set, for messages. Reading a value collects its mistakes, and raises
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from howdah.compat.xlearning import keys
from howdah.compat.xlearning.options import MANY, OPTIONS, ParsedOptions
from howdah.errors import Mistake, SpecError
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass

PAGE = "docs/coming-from-xlearning.md"
_NEEDLESS = "nothing to set here"
_FOREIGN = "Hadoop's own keys are read from HADOOP_CONF_DIR alone"
_UNKNOWN = "no keys that are known"


@dataclass(frozen=True)
class XLearningSetting:
    """A value with its origin."""

    text: str
    where: str
    """The words with which it was set: `--worker-num`, `--conf hbox.worker.num`, `hbox-site.xml: …`."""


@dataclass
class XLearningSettings:
    """All settings of one submission."""

    options: ParsedOptions
    values: dict[str, XLearningSetting] = field(default_factory=dict)
    """The value of each key."""
    environment: dict[str, str] = field(default_factory=dict)
    """The tasks' variables."""
    clusters: dict[str, str] = field(default_factory=dict)
    """The configuration files of other clusters, by name."""
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _ignored: dict[str, list[str]] = field(default_factory=lambda: {_NEEDLESS: [], _FOREIGN: [], _UNKNOWN: []})
    """The keys without an effect, by the reason."""

    # Merging

    def add_site(self, properties: Mapping[str, str], file: str) -> None:
        """Add the keys of the site file; Hadoop's own keys in it are left out."""
        for name, value in properties.items():
            key = keys.canonical_key(name)
            if not self._cluster(name, value) and key is not None:
                self._set(key, XLearningSetting(value.strip(), f"{file}: {name}"), name, noted=False)

    def add_options(self, file: str, program: str) -> None:
        """Add the command line's options, over the site file."""
        ignored = [key for key in self.values if key in OPTIONS.values() and not self._is_typed(key)]
        if ignored:
            names = ", ".join(sorted(self.values[key].where.partition(": ")[2] for key in ignored))
            self.notes.append(f"{file} counts here: {names} ({program} took its own defaults instead)")
        for name, values in self.options.values.items():
            if name not in MANY:
                self._set(OPTIONS[name], XLearningSetting(values[0].strip(), f"--{name}"), name)

    def add_conf(self) -> None:
        """Add `--conf key=value`, over everything."""
        for pair in self.options.values.get("conf", []):
            name, equals, value = pair.partition("=")
            key = keys.canonical_key(name.strip())
            if not equals or not name.strip():
                self.wrong_at("--conf", f"is {pair!r}, must be key=value")
            elif self._cluster(name.strip(), value):
                continue
            elif key is None and name.strip() in keys.KNOWN:
                self._ignored[_UNKNOWN].append(f"{name.strip()} (did you mean {keys.PREFIXES[-1]}{name.strip()}?)")
            elif key is None:
                self._ignored[_FOREIGN].append(name.strip())
            else:
                self._set(key, XLearningSetting(value.strip(), f"--conf {name.strip()}"), name.strip())

    def _cluster(self, name: str, value: str) -> bool:
        cluster = (keys.canonical_key(name) or name).removesuffix(".conf.path")
        if name.endswith(".conf.path"):
            self.clusters[cluster] = value.strip()
        return name.endswith(".conf.path")

    def _is_typed(self, key: str) -> bool:
        return any(OPTIONS.get(name) == key for name in self.options.values)

    def _set(self, key: str, setting: XLearningSetting, name: str, noted: bool = True) -> None:
        if key.startswith(keys.VARIABLE) and key != keys.VARIABLE:
            self.environment[key[len(keys.VARIABLE) :]] = setting.text
        elif key in keys.REFUSED:
            self._refuse(key, setting, name)
        elif key in keys.KNOWN or key in OPTIONS.values() or key in keys.UNPREFIXED.values():
            self.values[key] = setting
        elif not keys.NEEDLESS.fullmatch(key):
            known = nearest(key, keys.KNOWN)
            prefix = name.partition(".")[0]
            self._ignored[_UNKNOWN].append(f"{name} (did you mean {prefix}.{known}?)" if known else name)
        elif noted:
            self._ignored[_NEEDLESS].append(name)

    def _refuse(self, key: str, setting: XLearningSetting, name: str) -> None:
        if setting.text.lower() in ("", keys.HARMLESS.get(key, "")):
            return
        if not setting.where.startswith("-"):
            self._ignored[_NEEDLESS].append(name)  # the user cannot edit the administrator's file
        else:
            instead = keys.REFUSED[key].format(prefix=name.partition(".")[0] + ".")
            self.wrong_at(setting.where, f"is not possible here: {instead} ({PAGE})")

    def notes_on_ignored(self) -> Iterable[str]:
        """Yield a note on each group of keys that have no effect here."""
        for reason, names in self._ignored.items():
            if names:
                yield f"{', '.join(dict.fromkeys(names))}: {reason} ({PAGE})"

    def check(self) -> None:
        """Read every value that is set, whether this job uses it or not, so that its mistakes are found."""
        for key in self.values:
            if key in keys.FLAGS:
                self.flag(key)
            elif key in keys.MEMORIES:
                self.memory(key)
            elif key in keys.FRACTIONS:
                self.fraction(key, 0.5)
            elif key in keys.NUMBERS:
                self.number(key, 0)
            elif key in keys.CHOICES:
                self.choice(key)

    # Reading

    def given(self, key: str) -> bool:
        """Return whether the key is set."""
        return bool(self.text(key))

    def where(self, key: str) -> str:
        """Return the words with which the key was set, or the option that would set it."""
        if key in self.values:
            return self.values[key].where
        return next((f"--{name}" for name, same in OPTIONS.items() if same == key), key)

    def wrong(self, key: str, problem: str, hint: str | None = None) -> None:
        """Add a mistake in the value of `key`."""
        self.wrong_at(self.where(key), problem, hint)

    def wrong_at(self, where: str, problem: str, hint: str | None = None) -> None:
        """Add a mistake that belongs to no key."""
        mistake = Mistake(where, problem, hint)
        if mistake not in self.mistakes:
            self.mistakes.append(mistake)

    def text(self, key: str, default: str = "") -> str:
        """Return the value."""
        return self.values[key].text if key in self.values and self.values[key].text else default

    def number(self, key: str, default: int) -> int:
        """Return a whole number."""
        text = self.text(key)
        if text and not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            self.wrong(key, f"is {text!r}, must be a whole number")
            return default
        return int(text) if text else default

    def fraction(self, key: str, default: float) -> float:
        """Return a number that is not negative."""
        text = self.text(key)
        if text and not re.fullmatch(r"\+?([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)[fFdD]?", text):
            self.wrong(key, f"is {text!r}, must be a number such as {default:g}")
            return default
        return float(text.rstrip("fFdD")) if text else default

    def memory(self, key: str, default: int = 1024) -> int:
        """Return MiB: a whole number, or one that ends in G or M."""
        match = re.fullmatch(r"([+-]?[0-9]{1,18})([GgMm]?)", self.text(key, str(default)))
        if not match:
            self.wrong(key, f"is {self.text(key)!r}, must be a whole number of MB, or end in G or M")
            return default
        return int(match[1]) * (1024 if match[2] in ("G", "g") else 1)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return the value of a boolean key."""
        text = self.text(key).lower()
        if text not in ("", "true", "false"):
            self.wrong(key, f"is {self.text(key)!r}, must be true or false", nearest(text, ("true", "false")))
            return default
        return text == "true" if text else default

    def choice(self, key: str) -> str:
        """Return one of `keys.CHOICES`."""
        allowed = keys.CHOICES[key]
        text = self.text(key).upper()
        if text and text not in allowed:
            self.wrong(key, f"is {self.text(key)!r}, must be one of {', '.join(allowed)}", nearest(text, allowed))
            return allowed[0]
        return text or allowed[0]

    def get_list(self, key: str) -> list[str]:
        """Return the parts between commas."""
        return [part.strip() for part in self.text(key).split(",") if part.strip()]


def site_directory(prefix: str, environ: Mapping[str, str]) -> Path | None:
    """Return $HBOX_CONF_DIR, else $HBOX_HOME/conf (XLEARNING_… for the older one); None if neither is set.

    Raises:
        SpecError: the variable names no directory.
    """
    name = prefix.upper()
    if environ.get(f"{name}_CONF_DIR"):
        named = Path(environ[f"{name}_CONF_DIR"])
        if not named.is_dir():
            raise SpecError.at(f"{name}_CONF_DIR", f"no such directory: {named}")
        return named
    return Path(environ[f"{name}_HOME"], "conf") if environ.get(f"{name}_HOME") else None


def site_properties(prefix: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of the site file, with variables replaced as in Hadoop's own files; nothing if there is no
    file.

    Raises:
        SpecError: the file is no configuration; names the line.
    """
    directory = site_directory(prefix, environ)
    if directory is None:
        return {}
    from howdah.hadoop import conf  # most users have no such file

    raw, _ = conf.merge([directory / f"{prefix}-site.xml"])
    return {name: conf.expand(value, raw.get) for name, value in raw.items()}
