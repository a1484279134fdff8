"""Finds the paths of this node that a program in a container image must see, under all their names.

A directory may have several names (/home leads to /gpfs): variables, arguments and links use any of them. So each is
mounted under every name by which the kernel reaches it, and links lead to the same place inside.
"""

from __future__ import annotations

import os
from typing import Dict, Iterable, Iterator, List, Sequence, Set, Tuple

_MANY_LINKS = 50
_MAX_LINKS = 40  # as path_resolution(7)
_OWN_OF_CONTAINERS = ("/proc", "/sys", "/dev/fd", "/dev/pts")


class NodeMounts:
    """The paths of this node that a container sees: the `writable` ones, and the targets of the links below
    `linking`."""

    def __init__(self, writable: Sequence[str], linking: Sequence[str]) -> None:
        self._links: Dict[str, str] = {}
        names = {name: os.path.realpath(path) for path in writable for name in self._names(path)}
        self._found: Dict[str, Tuple[str, bool]] = {
            name: (source, True) for name, source in names.items() if not _is_below(name, names)
        }
        self._add_targets(linking)

    def options(self, taken: Set[str]) -> Iterator[str]:
        """Yield a value of `--mount` for each path, parents first. Targets that are in `taken` are left out."""
        for target, (source, writable) in sorted(self._found.items()):
            if target not in taken:
                fields = ("type=bind", f"source={source}", f"destination={target}", *(() if writable else ("ro",)))
                yield ",".join(map(_quote, fields))

    def _add_targets(self, linking: Sequence[str]) -> None:
        writable = set(self._found)
        names = [name for parent in linking for link in _links_below(parent) for name in self._names(link)[1:]]
        parents: Dict[str, List[str]] = {}
        for name in dict.fromkeys(names):
            if name not in ("/", *_OWN_OF_CONTAINERS) and not _is_below(name, {*writable, *_OWN_OF_CONTAINERS}):
                parents.setdefault(os.path.dirname(name), []).append(name)
        for parent, inside in parents.items():
            for name in [parent] if len(inside) > _MANY_LINKS and parent != "/" else inside:
                self._found.setdefault(name, (os.path.realpath(name), False))

    def _names(self, path: str) -> List[str]:
        """Return all names of the target of `path`: `path` itself, then each name that a link leads to."""
        name, found = os.path.normpath(path), []
        for _ in range(_MAX_LINKS):
            found.append(name)
            link = self._first_link(name)
            if not link:
                break
            name = os.path.normpath(os.path.join(os.path.dirname(link), self._links[link]) + name[len(link) :])
        return list(dict.fromkeys([*found, os.path.realpath(path)]))

    def _first_link(self, path: str) -> str:
        end = 0
        while end < len(path):
            found = path.find("/", end + 1)
            end = found if found > 0 else len(path)
            part = path[:end]
            if part not in self._links:
                self._links[part] = os.readlink(part) if os.path.islink(part) else ""
            if self._links[part]:
                return part
        return ""


def _links_below(directory: str) -> Iterator[str]:
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = os.path.join(parent, name)
            if os.path.islink(path) and os.path.exists(path):
                yield path


def _is_below(path: str, directories: Iterable[str]) -> bool:
    return any(path.startswith(f"{directory}/") for directory in directories)


def _quote(field: str) -> str:
    """Quote a field as in a file of comma-separated values, which the tools read."""
    return '"{}"'.format(field.replace('"', '""')) if set(field) & set(',"\n') else field
