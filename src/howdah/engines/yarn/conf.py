"""Gives YARN's clients the properties they need: Hadoop's defaults, overridden by the *-site files of a directory.

`howdah.hadoop.conf` reads the files.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from howdah.errors import SpecError
from howdah.hadoop import conf, identity
from howdah.hadoop.rpc import Address, Kerberos, Login, SimpleLogin
from howdah.spec.values import dataclass

FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "resource-types.xml")
ADVICE = "point it at the cluster's configuration directory, or start a cluster with `howdah sandbox up`"
_SECRET = re.compile(r"password|passwd|secret(?!-)|access\.key|account\.key", re.IGNORECASE)
FOREVER_S = 7 * 86400.0
"""Stands for -1 milliseconds, by which Hadoop means no limit: longer than any repair of a ResourceManager."""
_PORTS = {"": 8032, "scheduler": 8030, "resource-tracker": 8031, "admin": 8033}
# The defaults of Hadoop 3 for what howdah asks.
_DEFAULTS = {
    "fs.defaultFS": "file:///",
    "hadoop.http.staticuser.user": "dr.who",
    "hadoop.security.authentication": "simple",
    "yarn.resourcemanager.hostname": "0.0.0.0",  # noqa: S104
    "yarn.resourcemanager.ha.enabled": "false",
    "yarn.log-aggregation-enable": "false",
    "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",  # noqa: S108
    "yarn.nodemanager.remote-app-log-dir-suffix": "logs",
}


@dataclass(frozen=True)
class Configuration:
    """The merged properties of a configuration directory."""

    directory: str = ""
    """The directory."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Values by name, in which `${...}` is not yet replaced."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The file from which each property comes."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Environment variables that values may refer to."""

    def text(self, key: str, default: str = "") -> str:
        """Return the value with `${...}` replaced, or `default`, or Hadoop's own default."""
        value = self.properties.get(key, default or _DEFAULTS.get(key, ""))
        known = {**_DEFAULTS, **self.properties}
        return conf.expand(value, lambda name: conf.look_up(name, known, self.environment)).strip()

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean; as in Hadoop, anything but true and false gives the default."""
        return {"true": True, "false": False}.get(self.text(key).lower(), default)

    def number(self, key: str, default: int) -> int:
        """Return a whole number.

        Raises:
            SpecError: the value is no whole number; it names the file.
        """
        value = self.text(key, str(default))
        try:
            return int(value, 0)
        except ValueError:
            raise SpecError.at(self.origins.get(key, key), f"{key} is {value!r}, must be a whole number") from None

    def get_list(self, key: str, default: str = "") -> list[str]:
        """Return the parts of a comma-separated value."""
        return [word.strip() for word in self.text(key, default).split(",") if word.strip()]

    def merged(self) -> dict[str, str]:
        """Return all properties, expanded, without those whose names indicate secrets."""
        return {key: self.text(key) for key in self.properties if not _SECRET.search(key)}

    @property
    def secure(self) -> bool:
        """Return whether the cluster demands Kerberos."""
        return self.text("hadoop.security.authentication").lower() == "kerberos"

    def login(self) -> Login:
        """Return how a user logs in to the ResourceManager.

        Raises:
            SpecError: the server's principal is not known.
        """
        if not self.secure:
            return SimpleLogin(self.user)
        principal = self.text("yarn.resourcemanager.principal")
        if not principal:
            raise SpecError.at("yarn.resourcemanager.principal", f"is not set, but {self.directory} demands Kerberos")
        return Kerberos(principal)

    @functools.cached_property
    def user(self) -> str:
        """Return the name of the user under which the cluster knows this process."""
        return identity.user(self.secure, self.environment)

    @property
    def silence_limit(self) -> float:
        """Return the seconds for which a running job waits for a ResourceManager, as Hadoop's own clients do."""
        milliseconds = self.number("yarn.resourcemanager.connect.max-wait.ms", 900_000)
        return milliseconds / 1000 if milliseconds >= 0 else FOREVER_S

    @property
    def expiry(self) -> float:
        """Return the seconds of silence after which the ResourceManager considers a master, or its node, dead."""
        names = ("yarn.nm.liveness-monitor.expiry-interval-ms", "yarn.am.liveness-monitor.expiry-interval-ms")
        return min(self.number(name, 600_000) for name in names) / 1000

    def resourcemanagers(self, service: str = "") -> list[Address]:
        """Return the ResourceManager's addresses; with high availability there are several.

        `service` is "" (clients) or `scheduler`.
        """
        key = f"yarn.resourcemanager.{service}.address" if service else "yarn.resourcemanager.address"
        ids = self.get_list("yarn.resourcemanager.ha.rm-ids") if self.flag("yarn.resourcemanager.ha.enabled") else []
        if not ids:
            return [self._address(key, "yarn.resourcemanager.hostname", _PORTS[service])]
        return [self._address(f"{key}.{id_}", f"yarn.resourcemanager.hostname.{id_}", _PORTS[service]) for id_ in ids]

    def _address(self, key: str, host_key: str, default_port: int) -> Address:
        value = self.text(key) or self.text(host_key)
        if not value:
            raise SpecError.at(key, f"neither it nor {host_key} is set in {self.directory}")
        return Address.parse(value, default_port, "ResourceManager", key)


def load(directory: str | None) -> Configuration:
    """Read the configuration in `directory`.

    Raises:
        SpecError: there is none; it says what to set.
    """
    if not directory:
        raise SpecError.at("HADOOP_CONF_DIR", f"is not set: {ADVICE}")
    found = [path for path in (Path(directory) / name for name in FILES) if path.is_file()]
    if not any(path.name in ("core-site.xml", "yarn-site.xml") for path in found):
        problem = f"{directory!r} has neither core-site.xml nor yarn-site.xml: {ADVICE}"
        raise SpecError.at(conf.named_by(directory), problem)
    properties, origins = conf.merge(found)
    return Configuration(str(directory), properties, origins)
