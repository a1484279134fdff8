"""Code that belongs straight into the working directory: copied out of where an archive was unpacked.

Copied, because programs write beside their code, and what was unpacked is shared with other containers of the node.
"""

from __future__ import annotations

import os
import shutil
from typing import Mapping

LINK_FROM = 64 << 20


def spread(places: Mapping[str, str], directory: str) -> None:
    """Copy what is in the directories that `places` names to where it says below `directory`; what is there already
    stays. Large files are linked.

    Raises:
        OSError: no room, or nothing of that name.
    """
    for name, into in places.items():
        target = os.path.join(directory, into)
        os.makedirs(target, exist_ok=True)
        _copy(os.path.join(directory, name), target)


def _copy(source: str, target: str) -> None:
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        to = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            os.makedirs(to, exist_ok=True)
            _copy(entry.path, to)
        elif os.path.lexists(to):
            continue
        elif entry.is_symlink():
            os.symlink(os.readlink(entry.path), to)
        elif entry.stat().st_size < LINK_FROM:
            shutil.copy(entry.path, to)
        else:
            os.symlink(os.path.realpath(entry.path), to)
