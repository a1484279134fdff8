"""Merges TonY's configuration as Hadoop does: tony-default.xml < tony.xml or --conf_file < tony-site.xml < --conf.

The site's file overrides the job's, which surprises users; so messages name the origin of a value. --conf adds to three
of the keys, and replaces the others.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from howdah.compat.tony.options import TonyOptions, parse_pair, split_pairs
from howdah.errors import Mistake, SpecError
from howdah.hadoop.conf import Property, environment_variable, expand, parse, read_properties
from howdah.spec import uris
from howdah.spec.values import dataclass

# The defaults of tony-default.xml that matter here.
DEFAULTS = {
    "tony.application.name": "TensorFlowApplication",
    "tony.application.type": "TONY",
    "tony.application.framework": "tensorflow",
    "tony.application.distributed-mode": "GANG",
    "tony.application.untracked.jobtypes": "ps",
    "tony.application.sidecar.jobtypes": "tensorboard",
    "tony.application.stop-on-failure-jobtypes": "ps",
    "tony.application.security.enabled": "true",
}
APPENDED = ("tony.containers.envs", "tony.execution.envs", "tony.containers.resources")
SITE_DIRECTORY = "/export/apps/tony/conf"
_NUMBER = re.compile(r"[+-]?\d{1,18}")
# TonY's own reader takes the digits up to the first g or m, and ignores what follows.
_MEMORY = re.compile(r"(\d{1,18})(?:([gGmM]).*)?")


@dataclass
class Conf:
    """The merged properties."""

    environ: Mapping[str, str]
    hadoop: str = ""
    """The directory of Hadoop's own configuration, for files on the cluster."""
    values: dict[str, str] = field(default_factory=lambda: dict(DEFAULTS))
    """The value of each key, before `${…}` is replaced."""
    origins: dict[str, str] = field(default_factory=dict)
    """The file and line, or option, that set each key; defaults have none."""
    mistakes: list[Mistake] = field(default_factory=list)
    """The mistakes in values that were read."""
    site: str = ""
    """The path of the administrator's file."""
    _final: set[str] = field(default_factory=set)

    def add(self, properties: Iterable[Property], file: str) -> None:
        """Add the properties of a file; a property that an earlier file calls final stays."""
        for entry in properties:
            if entry.name not in self._final:
                origin = f"{file}:{entry.line}" if entry.line else file
                self.values[entry.name], self.origins[entry.name] = entry.value.strip(), origin
            if entry.final:
                self._final.add(entry.name)

    def add_site(self) -> None:
        """Add the properties of the administrator's file, if there is one."""
        site = Path(self.environ.get("TONY_CONF_DIR") or SITE_DIRECTORY, "tony-site.xml")
        if site.is_file():
            self.site = str(site)
            self.add(read_properties(site), self.site)

    def set(self, key: str, value: str) -> None:
        """Set a property by --conf, which overrides every file."""
        if key in APPENDED and self.values.get(key):
            value = f"{self.values[key]},{value}"
        self.values[key], self.origins[key] = value, f"--conf {key}"

    def get(self, key: str) -> str:
        """Return the value with `${…}` replaced; "" if there is none."""
        return expand(self.values.get(key, ""), self._variable).strip()

    def explicit_keys(self) -> Iterator[str]:
        """Return the keys that are set explicitly, without defaults."""
        return (key for key in self.values if key in self.origins)

    def of_site(self, key: str) -> bool:
        """Return whether the administrator's file, which the user cannot edit, sets the key."""
        return bool(self.site) and self.origins.get(key, "").rpartition(":")[0] == self.site

    def get_list(self, key: str) -> list[str]:
        """Return the parts of the value between its commas."""
        return [part.strip() for part in self.get(key).split(",") if part.strip()]

    def pairs(self, key: str) -> dict[str, str]:
        """Return the value's `name=value` pairs, which commas separate."""
        return dict(parse_pair(text, key, self.mistakes) for text in split_pairs(self.get(key)))

    def number(self, key: str, default: int = 0) -> int:
        """Return a whole number, which may be negative."""
        text = self.get(key)
        if text and not _NUMBER.fullmatch(text):
            self.wrong(key, f"is {text!r}, must be a whole number")
            return default
        return int(text) if text else default

    def seconds(self, key: str, unit_s: float = 0.001) -> float:
        """Return a time. Most of TonY's times are in milliseconds; 0 and below mean no limit."""
        return max(0.0, self.number(key) * unit_s)

    def flag(self, key: str) -> bool:
        """Return whether the value is `true`, as Hadoop reads it."""
        text = self.get(key).lower()
        if text not in ("", "true", "false"):
            self.wrong(key, f"is {text!r}, must be true or false")
        return text == "true"

    def memory_mib(self, key: str, default: str = "2g") -> int:
        """Read an amount of memory such as `2g`, `2048m` or `2048`."""
        text = self.get(key) or default
        match = _MEMORY.fullmatch(text)
        if not match:
            self.wrong(key, f"is {text!r}, must be a whole number of MB, or end in g or m, such as 2g")
            return 2048
        return int(match[1]) * (1024 if (match[2] or "m") in "gG" else 1)

    def wrong(self, key: str, problem: str, near: str | None = None) -> None:
        """Add a mistake that names where the key is set."""
        self.mistakes.append(Mistake(key, problem, near, self.origins.get(key)))

    def _variable(self, name: str) -> str | None:
        if name.startswith("env."):
            return environment_variable(name, self.environ)
        if name == "user.name":
            return self.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return self.values.get(name)


def merge_configuration(
    options: TonyOptions,
    directory: Path,
    environ: Mapping[str, str],
    hadoop: str = "",
    job_files: Mapping[str, Iterable[Property]] = MappingProxyType({}),
) -> Conf:
    """Return the whole configuration of this submission. `job_files` holds the properties of the job's own files: they
    override its tony.xml, and the site's file, if there is one, overrides them.

    Raises:
        SpecError: a file is no configuration; names its line.
        StagingError: the file of --conf_file can't be read.
    """
    conf = Conf(environ, hadoop)
    named = options.first("conf_file")
    if named:
        conf.add(_read_named_file(named, directory, hadoop), named)
    elif (directory / "tony.xml").is_file():
        conf.add(read_properties(directory / "tony.xml"), "tony.xml")
    for file, properties in job_files.items():
        conf.add(properties, file)
    conf.add_site()
    for text in options.values.get("conf", []):
        conf.set(*parse_pair(text, "--conf", options.mistakes))
    return conf


def _read_named_file(path: str, directory: Path, hadoop: str) -> list[Property]:
    if not uris.has_scheme(path):
        if not os.path.isfile(directory / path):  # noqa: PTH113 - False also for a name that no file can have
            raise SpecError.at("--conf_file", f"{path!r}: no such file")
        return list(read_properties(directory / path))
    from howdah.storage.factory import filesystem  # most command lines name a local file

    return parse(filesystem(path, hadoop).read_bytes(path), path)
