"""Sends a file or a directory over a connection, and receives it.

The transfer is a sequence of entries: four bytes of length, a JSON object that describes a file, a directory or a link,
and the file's bytes, which the kernel copies by itself (sendfile). The last entry says that everything was sent, or
what went wrong, so a broken connection never looks like an end. A received file or directory gets its name when it is
complete.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PIECE = 1 << 20
STALL_S = 120.0
"""Seconds without a byte after which a copy is given up; a connection gets this time limit before it is used here."""
_MAX_ENTRY = 1 << 20
NO_FILE = "it is neither a file nor a directory"
_BROKEN = (ConnectionError, socket.timeout)
_TOP = "top"
"""The name of the file or directory during the transfer: its receiver decides its final name."""
_LENGTH = struct.Struct("!I")


class CopyProblem(Exception):
    """The file or directory does not exist, or cannot be read or written, for this reason."""


# Sending


def send_tree(path: Path, connection: socket.socket) -> list[str]:
    """Send the file or the directory at `path`. Return what is left out of a directory: sockets, pipes and devices, and
    files that this user may not read.

    A problem with `path`, and the names of what is left out, are sent, too.

    Raises:
        OSError: the connection breaks.
    """
    problem = ""
    left_out: list[str] = []
    try:
        for each, name in _entries(_existing(path), _TOP, left_out.append):
            if not _send(each, name, connection):
                left_out.append(name[len(_TOP) + 1 :])
    except CopyProblem as error:
        problem = str(error)
    left_out = _first_names(left_out)
    _send_entry(connection, {"end": True, "problem": problem, "left_out": left_out})
    return left_out


def _first_names(names: list[str]) -> list[str]:
    """Return the names for which an entry has room, and the number of further ones."""
    room, kept = _MAX_ENTRY // 2, list[str]()
    for name in names:
        room -= len(json.dumps(name))
        if room < 0:
            return [*kept, f"… ({len(names) - len(kept)} more)"]
        kept.append(name)
    return kept


def _existing(path: Path) -> Path:
    try:
        found = path.resolve(strict=True)
        if not found.is_file() and not found.is_dir():
            raise CopyProblem(f"{path}: {NO_FILE}")
        return found
    except (OSError, RuntimeError) as error:
        raise CopyProblem(f"{path}: {getattr(error, 'strerror', '') or 'its links lead in a circle'}") from error


def _entries(path: Path, name: str, leave_out: Callable[[str], object]) -> Iterator[tuple[Path, str]]:
    yield path, name
    if os.path.isdir(path) and not path.is_symlink():  # noqa: PTH112 - False where it may not be looked at
        try:
            found = sorted(path.iterdir())
        except OSError as error:
            if isinstance(error, PermissionError) and name != _TOP:
                leave_out(name[len(_TOP) + 1 :])
                return
            raise CopyProblem(f"{path}: {error.strerror}") from error
        for each in found:
            yield from _entries(each, f"{name}/{each.name}", leave_out)


def _send(path: Path, name: str, connection: socket.socket) -> bool:
    """Send one entry; return False if it is of a kind that cannot be sent."""
    try:
        status = path.lstat()
        described = {"name": name, "mode": stat.S_IMODE(status.st_mode) & 0o777, "modified_ns": status.st_mtime_ns}
        if stat.S_ISDIR(status.st_mode):
            _send_entry(connection, {**described, "kind": "directory"})
            return True
        if stat.S_ISLNK(status.st_mode):
            _send_entry(connection, {"name": name, "kind": "link", "target": str(path.readlink())})
            return True
        if not stat.S_ISREG(status.st_mode):
            return False
        file = path.open("rb")
    except OSError as error:
        if error.filename is None:  # of the connection
            raise
        if isinstance(error, PermissionError) and name != _TOP:  # one file must not keep all others from being copied
            return False
        raise CopyProblem(f"{path}: {error.strerror}") from error
    with file:
        size = os.fstat(file.fileno()).st_size
        _send_entry(connection, {**described, "kind": "file", "size": size})
        sent = connection.sendfile(file, 0, size) if size else 0
        while sent < size:  # the receiver waits for as many bytes as were announced
            sent += connection.send(bytes(min(PIECE, size - sent)))
            if sent == size:
                raise CopyProblem(f"{path}: it became shorter while it was copied")
    return True


def _send_entry(connection: socket.socket, entry: Mapping[str, Any]) -> None:
    content = json.dumps(entry).encode()
    connection.sendall(_LENGTH.pack(len(content)) + content)


# Receiving


def receive_tree(
    connection: socket.socket,
    early: bytes,
    destination: Path,
    name: str,
    tell_left_out: Callable[[str], object] = str,
) -> Path:
    """Write what `send_tree` sends to `destination`, or under `name` into it if it is a directory; return the path. A
    file replaces a file. `early` are bytes of it that have been received already. The sender cannot influence where it
    is written. `tell_left_out` is called with the name of each thing that the sender has left out.

    Raises:
        CopyProblem: the sender could not read it, or it cannot be written here. Then nothing is.
        EOFError: the connection ends before all is there.
    """
    target = destination / name if destination.is_dir() else destination
    # An existing directory is never replaced, so everything would be received in vain. A directory that may not be read
    # is reported below.
    if os.path.isdir(target):  # noqa: PTH112
        raise CopyProblem(f"{target}: exists already")
    parent = destination if destination.is_dir() else destination.absolute().parent
    staging = parent / f".howdah-copy-{secrets.token_hex(6)}"
    try:
        staging.mkdir()
    except OSError as error:
        raise CopyProblem(f"{parent}: {error.strerror}") from error
    try:
        receiver = _Receiver(connection, early, staging)
        received = receiver.receive()
        target = destination / name if destination.is_dir() else destination
        if os.path.lexists(target) and (received.is_dir() or target.is_dir()):
            raise CopyProblem(f"{target}: exists already")
        received.replace(target)
    except (*_BROKEN, ValueError, KeyError) as error:
        raise EOFError(f"the connection was lost before all was copied: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    for each in receiver.left_out:
        tell_left_out(each)
    return target


class _Receiver:
    """Unpacks entries into the directory `staging`."""

    def __init__(self, connection: socket.socket, early: bytes, staging: Path) -> None:
        self._connection, self._early, self._staging = connection, early, staging
        self._piece = memoryview(bytearray(PIECE))
        self._directories: list[tuple[Path, int]] = []
        self.left_out: list[str] = []

    def receive(self) -> Path:
        """Receive all entries; return the path at the top."""
        while True:
            size = _LENGTH.unpack(self._read(_LENGTH.size))[0]
            if size > _MAX_ENTRY:
                raise ValueError("what was received is no entry")
            entry = json.loads(self._read(size))
            if entry.get("end"):
                if entry["problem"]:
                    raise CopyProblem(str(entry["problem"]))
                for path, modified_ns in reversed(self._directories):  # the inner ones first
                    os.utime(path, ns=(modified_ns, modified_ns))
                self.left_out = [str(each) for each in entry.get("left_out", ())]
                return self._staging / _TOP
            name = str(entry["name"])
            if name.partition("/")[0] != _TOP:
                raise ValueError("what was received is no entry")
            try:
                self._unpack(name, entry)
            except _BROKEN:
                raise
            except OSError as error:
                raise CopyProblem(f"{name}: {error.strerror or error}") from error

    def _unpack(self, name: str, entry: Mapping[str, Any]) -> None:
        path, staging = self._staging / name, self._staging.resolve()
        parent = path.parent.resolve()
        if ".." in path.parts or staging not in (parent, *parent.parents):
            raise CopyProblem(f"{name}: leads out of the directory")
        if entry["kind"] == "link":
            path.symlink_to(str(entry["target"]))
            return
        mode, modified_ns = int(entry["mode"]) & 0o777, int(entry["modified_ns"])
        if entry["kind"] == "directory":
            path.mkdir()
            path.chmod(mode | stat.S_IRWXU)
            self._directories.append((path, modified_ns))
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "wb", buffering=0) as file:  # noqa: PTH123 - of an open file
            self._copy(int(entry["size"]), file.fileno())
            os.fchmod(file.fileno(), mode)
        os.utime(path, ns=(modified_ns, modified_ns))

    def _copy(self, size: int, file: int) -> None:
        """Write `size` bytes to an open file."""
        while size:
            if self._early:
                data = memoryview(self._early[:size])
                self._early = self._early[size:]
            else:
                data = self._piece[: self._receive_into(self._piece[: min(size, PIECE)])]
            size -= len(data)
            while data:
                data = data[os.write(file, data) :]

    def _read(self, size: int) -> bytes:
        while len(self._early) < size:
            room = self._piece[: size - len(self._early)]
            self._early += bytes(room[: self._receive_into(room)])
        data, self._early = self._early[:size], self._early[size:]
        return data

    def _receive_into(self, room: memoryview) -> int:
        size = self._connection.recv_into(room)
        if not size:
            raise ConnectionError("closed")
        return size
