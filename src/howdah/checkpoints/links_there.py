"""Finds the links in a directory of this machine through which a file would be written or removed elsewhere.

A task has no links: it gets copies of their targets. So its writes and removals must change only the copies.
"""

# ruff: noqa: PTH114, PTH118 - asked for each file

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable

from howdah.spec import uris


def find_links_in_the_way(uri: str, written: Iterable[str], removed: Collection[str], kept: Iterable[str]) -> list[str]:
    """Return the links below `uri` that must become copies before files are `written` and `removed`: links to a
    directory with such a file, and links by which a file in `kept` is the same as one that is removed."""
    scheme, _, directory = uris.split(uri)
    if scheme != "file":  # other file systems have none
        return []
    found = {_first_link(directory, posixpath.dirname(name)) for name in (*written, *removed)}
    paths = [os.path.join(directory, name) for name in removed]
    gone = {os.path.realpath(path) for path in paths if not os.path.islink(path)}
    if gone:
        found |= {
            _first_link(directory, name) for name in kept if os.path.realpath(os.path.join(directory, name)) in gone
        }
    return sorted(found - {""})


def _first_link(directory: str, name: str) -> str:
    """Return the beginning of a path below `directory` that is a link; "" if no part of it is one."""
    parts = name.split("/") if name else []
    beginnings = ("/".join(parts[:number]) for number in range(1, len(parts) + 1))
    return next((each for each in beginnings if os.path.islink(os.path.join(directory, each))), "")
