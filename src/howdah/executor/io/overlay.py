"""Mounts a directory with overlayfs so that writes to it land in another directory, if this process is allowed to.

The mount is in a mount namespace of this process and its children: nobody else sees it, and it is gone with them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil

_NEW_NAMESPACE, _RECURSIVE, _SLAVE, _DETACH = 0x20000, 0x4000, 1 << 19, 2  # sched.h, sys/mount.h
_ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\\:,"})
_begun = False


class Overlay:
    """The directory `lower`, seen at `path`; files that are written there land below `layers`.

    Raises:
        OSError: the kernel or the file system does not allow it.
    """

    def __init__(self, lower: str, path: str, layers: str) -> None:
        self.path, self._layers = path, layers
        _begin_namespace()
        upper, work = os.path.join(layers, "upper"), os.path.join(layers, "work")
        os.mkdir(path)
        os.makedirs(upper)
        os.makedirs(work)
        names = {"lowerdir": lower, "upperdir": upper, "workdir": work}
        options = ",".join(f"{name}={value.translate(_ESCAPED)}" for name, value in names.items())
        try:
            _call("mount", b"overlay", os.fsencode(path), b"overlay", 0, os.fsencode(options))
        except OSError:
            os.rmdir(path)
            shutil.rmtree(layers)
            raise

    def remove(self) -> None:
        """Unmount the directory, and remove what was written to it."""
        with contextlib.suppress(OSError):  # the program may have unmounted it
            _call("umount2", os.fsencode(self.path), _DETACH)
        if os.path.islink(self.path):
            os.unlink(self.path)
        with contextlib.suppress(OSError):  # a directory that the program has filled stays
            os.rmdir(self.path)
        shutil.rmtree(self._layers, ignore_errors=True)


def _begin_namespace() -> None:
    global _begun
    if not _begun:
        _call("unshare", _NEW_NAMESPACE)
        _call("mount", None, b"/", None, _RECURSIVE | _SLAVE, None)  # later mounts of the node are seen here, too
        _begun = True


def _call(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
