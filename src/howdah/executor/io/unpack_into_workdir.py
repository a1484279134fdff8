"""Copies the content of unpacked archives into the working directory.

It is copied, because programs write beside their code, and unpacked archives are shared with other containers of the
node. Some engines unpack archives with links that may lead anywhere: the links are checked here.
"""

from __future__ import annotations

import os
import shutil
from typing import Mapping

from howdah.localfiles.symlinks import is_interpreter, stays_inside

LINK_FROM = 64 << 20


def unpack_into_workdir(places: Mapping[str, str], directory: str) -> None:
    """Copy the content of each directory in `places` to its target below `directory`.

    Files that exist already stay. Large files are linked.

    Raises:
        OSError: no room, an archive is missing, a link leads out of its archive, or a file is a device.
    """
    for name, target_name in places.items():
        target = os.path.join(directory, target_name)
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
