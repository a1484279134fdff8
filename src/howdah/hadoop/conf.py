"""Reads Hadoop's `*-site.xml` files as Hadoop's own clients do: a later file wins, but never over a final property.

This is the only reader of them; `howdah.engines.yarn.conf` adds the properties and defaults that YARN's clients need.
Document types, and with them entities, are refused: no real configuration has one.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from xml.parsers import expat

from howdah.errors import EngineUnavailable, SpecError
from howdah.hadoop import identity
from howdah.localfiles import regular_file
from howdah.spec import uris

FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_MAX_DEPTH = 20  # Hadoop's own limit (Configuration.MAX_SUBST)
_INCLUDE = "xi:include"
_VIEW_NAME = "fs.viewfs.mounttable.default.name.key"
_MAX_INCLUDES = 5
MAX_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True)
class Property:
    """One <property> of a configuration file."""

    name: str
    value: str
    final: bool = False
    """True if later files do not override the property."""
    line: int = field(default=0, compare=False)
    """The property's line in the file."""


def directory(named: str = "") -> str:
    """Return the configuration directory: `named`, else $HADOOP_CONF_DIR, else $HADOOP_HOME/etc/hadoop, else ""."""
    home = os.environ.get("HADOOP_HOME")
    return named or os.environ.get("HADOOP_CONF_DIR") or (str(Path(home, "etc", "hadoop")) if home else "")


def named_by(conf_dir: str) -> str:
    """Return the name of what points to the directory: HADOOP_CONF_DIR if that is its value, else the setting."""
    variable = os.environ.get("HADOOP_CONF_DIR")
    return "HADOOP_CONF_DIR" if variable and Path(variable).absolute() == Path(conf_dir) else "hadoop_conf_dir"


def load(conf_dir: str) -> dict[str, str]:
    """Return the properties in `conf_dir` that a file system's client needs, expanded; none when `conf_dir` is "".

    Raises:
        SpecError: there is no such directory, or a file in it is not a Hadoop configuration.
    """
    if not conf_dir:
        return {}
    if not Path(conf_dir).is_dir():
        raise SpecError.at(named_by(conf_dir), f"no such directory: {conf_dir}")
    raw, _ = merge(Path(conf_dir, name) for name in FILES)
    return {name: expand(value, lambda variable: look_up(variable, raw, os.environ)) for name, value in raw.items()}


def default_filesystem(conf: Mapping[str, str]) -> str:
    """Return the URI of the file system of paths without a scheme."""
    found = conf.get("fs.defaultFS") or conf.get("fs.default.name") or "file:"
    return "file:///" if found.startswith("file:") else found.rstrip("/")


def complete(root: str, conf: Mapping[str, str]) -> str:
    """Complete `hdfs://` and `viewfs://` with the authority of the default file system (a host, a name service, a mount
    table), as Hadoop's own FileSystem.get does; return the roots of other file systems unchanged.

    Raises:
        EngineUnavailable: the default file system is of another kind, so that no server is named.
    """
    scheme, authority, _ = uris.split(root)
    if authority or scheme not in ("hdfs", "viewfs"):
        return root
    default = default_filesystem(conf)
    if uris.split(default)[0] == scheme and uris.split(default)[1]:
        return uris.root(default)
    if scheme == "viewfs":
        return uris.build(scheme, conf.get(_VIEW_NAME) or "default", "")
    raise EngineUnavailable(f"{root}/…: names no NameNode, and fs.defaultFS ({default}) names none either")


def home(conf: Mapping[str, str], root: str, user: str = "") -> str:
    """Return the directory at which relative paths of `user` start on `root`, a file system of the cluster. The default
    user is the one under which the cluster knows this process."""
    user = user or identity.user(identity.is_secure(conf))
    return uris.join(root, conf.get("dfs.user.home.dir.prefix") or "/user", user)


def merge(paths: Iterable[Path]) -> tuple[dict[str, str], dict[str, str]]:
    """Merge the files that exist; return the properties as they are written, and the file from which each comes.

    Raises:
        SpecError: a file cannot be read or is no configuration; the message names the line.
    """
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    finals: set[str] = set()
    for path in paths:
        for found in read_properties(path) if path.is_file() else ():
            if found.name not in finals:
                values[found.name], origins[found.name] = found.value, str(path)
            if found.final:
                finals.add(found.name)
    return values, origins


def expand(value: str, lookup: Callable[[str], str | None]) -> str:
    """Replace each `${name}` in `value` by `lookup(name)`; a name that `lookup` doesn't know stays as it is."""
    for _ in range(_MAX_DEPTH):
        expanded = _VARIABLE.sub(lambda match: match[0] if (found := lookup(match[1])) is None else found, value)
        if expanded == value:
            break
        value = expanded
    return value


def environment_variable(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the value of `env.NAME`, `env.NAME-default` (when it is not set) or `env.NAME:-default` (nor empty)."""
    parts = re.fullmatch(r"env\.(\w+)(:?-)?(.*)", name)
    if parts is None:
        return None
    found = environment.get(parts[1])
    usable = found is not None and (found or parts[2] != ":-")
    return found if usable else (parts[3] if parts[2] else None)


def look_up(name: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Return the value of `${name}`: that of a variable, of one of Java's system properties or of another property."""
    if name.startswith("env."):
        return environment_variable(name, environment)
    if name == "user.name":
        return identity.user(False, environment)
    java = {"user.home": str(Path.home()), "java.io.tmpdir": "/tmp"}  # noqa: S108
    return java.get(name) or properties.get(name)


def to_xml(properties: Mapping[str, object]) -> str:
    """Write properties as a Hadoop configuration; the same properties give the same text."""
    rows = (
        f"<property><name>{_escape(name)}</name><value>{_escape(str(value))}</value></property>\n"
        for name, value in sorted(properties.items())
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{"".join(rows)}</configuration>\n'


def _escape(text: str) -> str:
    """Escape as `xml.sax.saxutils` does; importing that module would load an HTTP client into every process."""
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")


def read_properties(path: Path, depth: int = 0) -> Iterator[Property]:
    """Read the properties of one file, and of XIncluded files in their place.

    Raises:
        SpecError: the file is malformed; it names the line.
    """
    try:
        data = regular_file.read(path, MAX_BYTES)
    except OSError as error:
        raise SpecError.at(str(path), error.strerror or str(error)) from None
    for found in parse(data, str(path)):
        if found.name != _INCLUDE:
            yield found
        elif depth < _MAX_INCLUDES:
            yield from read_properties(path.parent / found.value, depth + 1)


def parse(data: bytes, path: str) -> list[Property]:
    """Read the properties in a file's content; an XInclude counts as one.

    Raises:
        SpecError: the content is malformed; it names the line of `path`.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(data, True)
    except (expat.ExpatError, ValueError) as error:
        raise SpecError.at(f"{path}:{reader.parser.CurrentLineNumber}", str(error)) from None
    return reader.found


class _Reader:
    """Collects <property> elements; only the text of <name>, <value> and <final> counts in them."""

    def __init__(self) -> None:
        self.found: list[Property] = []
        self._property: dict[str, str] = {}
        self._inside = ""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _refuse(self, *_: object) -> None:
        raise ValueError("a document type is not allowed in a Hadoop configuration")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "property":
            self._property, self._inside = dict(attributes), ""
        elif tag == _INCLUDE and "href" in attributes:
            self.found.append(Property(_INCLUDE, attributes["href"]))
        elif tag in ("name", "value", "final"):
            self._inside, self._property[tag] = tag, ""

    def _end(self, tag: str) -> None:
        self._inside = ""
        name = self._property.get("name", "").strip()
        if tag == "property" and name:
            final = self._property.get("final", "").strip().lower() == "true"
            line = self.parser.CurrentLineNumber
            self.found.append(Property(name, self._property.get("value", ""), final, line))

    def _text(self, text: str) -> None:
        if self._inside:
            self._property[self._inside] += text


def user_on(conf_dir: str) -> str:
    """Return the name of this user on the cluster of this configuration, or on this machine."""
    return identity.user(identity.is_secure(load(directory(conf_dir))))
