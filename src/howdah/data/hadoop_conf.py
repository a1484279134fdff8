"""Hadoop's `*-site.xml` files: properties by name, `${other}` and `${env.VAR}` written out as Hadoop does."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from howdah.errors import EngineUnavailable

FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_MAX_DEPTH = 20  # Configuration.MAX_SUBST


def directory(named: str = "") -> str:
    """The configuration directory: as `named`, else $HADOOP_CONF_DIR, else $HADOOP_HOME/etc/hadoop, else ""."""
    if named or os.environ.get("HADOOP_CONF_DIR"):
        return named or os.environ["HADOOP_CONF_DIR"]
    home = os.environ.get("HADOOP_HOME")
    return str(Path(home, "etc", "hadoop")) if home else ""


def load(conf_dir: str, files: Sequence[str] = FILES) -> dict[str, str]:
    """The properties of those `files` that exist; a later file wins, but never over one marked final.

    Raises:
        EngineUnavailable: there is no such directory, or a file in it is not a Hadoop configuration.
    """
    if not conf_dir:
        return {}
    if not Path(conf_dir).is_dir():
        raise EngineUnavailable(f"Hadoop configuration: no directory {conf_dir} (set HADOOP_CONF_DIR)")
    raw: dict[str, str] = {}
    finals: set[str] = set()
    for file in files:
        path = Path(conf_dir, file)
        for name, value, final in _properties(path) if path.exists() else ():
            if name not in finals:
                raw[name] = value
            if final:
                finals.add(name)
    return {name: expand(value, raw) for name, value in raw.items()}


def default_filesystem(conf: Mapping[str, str]) -> str:
    """URI of the filesystem that paths without a scheme are on."""
    return (conf.get("fs.defaultFS") or conf.get("fs.default.name") or "file:///").rstrip("/") or "file:///"


def expand(value: str, properties: Mapping[str, str]) -> str:
    """`value` with its variables replaced; one that is unknown stays as it is."""
    for _ in range(_MAX_DEPTH):
        replaced = _VARIABLE.sub(lambda match: _variable(match, properties), value)
        if replaced == value:
            break
        value = replaced
    return value


def _variable(match: re.Match[str], properties: Mapping[str, str]) -> str:
    name = match[1]
    if name.startswith("env."):
        variable, _, default = name[4:].partition(":-")
        return os.environ.get(variable, default or match[0])
    if name == "user.name":
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return properties.get(name, match[0])


def _properties(path: Path) -> list[tuple[str, str, bool]]:
    # The parser alone costs a master half a megabyte; one without a configuration never pays it.
    from xml.etree import ElementTree

    try:
        elements = list(ElementTree.parse(path).getroot().iter("property"))  # noqa: S314
        found = [(_text(each, "name"), _text(each, "value"), _text(each, "final") == "true") for each in elements]
    except (OSError, ElementTree.ParseError) as error:
        raise EngineUnavailable(f"Hadoop configuration: {path}: {error}") from error
    return [row for row in found if row[0]]


def _text(element: object, name: str) -> str:
    found = element.findtext(name)  # type: ignore[attr-defined]
    return (found or "").strip()
