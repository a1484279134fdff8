"""Where symbolic links lead: what comes in archives, and what goes out with outputs, stays inside one directory."""

# ruff: noqa: PTH115, PTH117 - executors do without pathlib

from __future__ import annotations

import os
import re

_INTERPRETER = re.compile(r"(?:.*/)?bin/(?:python|pypy)[0-9.]*")


def is_interpreter(name: str) -> bool:
    """Whether `name`, seen from an archive's top, is that of a packed environment's link to the Python it was made
    with: the one kind of link that may lead out of an archive."""
    return _INTERPRETER.fullmatch(name) is not None


def is_inside(path: str, root: str) -> bool:
    """Whether `path`, when all links are followed, is `root` or lies below it."""
    real_root = os.path.realpath(root)
    real = os.path.realpath(path)
    return real == real_root or real.startswith(real_root.rstrip(os.sep) + os.sep)


def stays_inside(link: str, root: str) -> bool:
    """Whether a link is relative, and leads to something inside `root`."""
    return not os.path.isabs(os.readlink(link)) and is_inside(link, root)
