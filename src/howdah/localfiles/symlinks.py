"""Checks where symbolic links lead: those in archives and in outputs must stay inside one directory."""

# ruff: noqa: PTH115, PTH117 - executors do without pathlib

from __future__ import annotations

import os
import re

_INTERPRETER = re.compile(r"(?:.*/)?bin/(?:python|pypy)[0-9.]*")


def is_interpreter(name: str) -> bool:
    """Return whether `name`, relative to an archive's root, is the link of a packed environment to the Python with
    which it was made: the only kind of link that may lead out of an archive."""
    return _INTERPRETER.fullmatch(name) is not None


def is_inside(path: str, root: str) -> bool:
    """Return whether `path`, when all links are followed, is `root` or lies below it."""
    real_root = os.path.realpath(root)
    real = os.path.realpath(path)
    return real == real_root or real.startswith(real_root.rstrip(os.sep) + os.sep)


def stays_inside(link: str, root: str) -> bool:
    """Return whether a link is relative, and leads to a path inside `root`."""
    return not os.path.isabs(os.readlink(link)) and is_inside(link, root)
