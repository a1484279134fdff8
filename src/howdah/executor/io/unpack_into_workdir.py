"""Code that belongs straight into the working directory: copied out of where an archive was unpacked.

Copied, because programs write beside their code, and what was unpacked is shared with other containers of the node.
Whoever unpacked it (a NodeManager does so by itself) may have let links lead anywhere: they are looked at here.
"""

from __future__ import annotations

import os
import shutil
from typing import Mapping

from howdah.localfiles.symlinks import is_interpreter, stays_inside

LINK_FROM = 64 << 20


def unpack_into_workdir(places: Mapping[str, str], directory: str) -> None:
    """Copy what is in the directories that `places` names to where it says below `directory`; what is there already
    stays. Large files are linked.

    Raises:
        OSError: no room, nothing of that name, a link that leads out of what was unpacked, or a device.
    """
    for name, into in places.items():
        target = os.path.join(directory, into)
        os.makedirs(target, exist_ok=True)
        source = os.path.realpath(os.path.join(directory, name))
        _copy(source, target, source, name)


def _copy(source: str, target: str, root: str, archive: str) -> None:
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        to, member = os.path.join(target, entry.name), os.path.relpath(entry.path, root)
        if entry.is_dir(follow_symlinks=False):
            if os.path.islink(to):
                raise OSError(f"{archive}: {member!r} lies below a link that another archive has made")
            os.makedirs(to, exist_ok=True)
            _copy(entry.path, to, root, archive)
        elif os.path.lexists(to):
            continue
        elif entry.is_symlink():
            link = os.readlink(entry.path)
            if not is_interpreter(member) and not stays_inside(entry.path, root):
                raise OSError(f"{archive}: {member!r} is a link out of the archive, to {link!r}")
            os.symlink(link, to)
        elif not entry.is_file():
            raise OSError(f"{archive}: {member!r} is a device or a pipe")
        elif entry.stat().st_size < LINK_FROM:
            shutil.copyfile(entry.path, to)
            os.chmod(to, entry.stat().st_mode & 0o777)
        else:
            os.symlink(os.path.realpath(entry.path), to)
