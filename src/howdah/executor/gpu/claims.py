"""Claims GPUs of this node for one executor at a time, where the engine assigns none.

A claim is a lock (flock) on a file for each device, in a directory below /tmp that only this user can write and whose
files only this user can open: no other account can hold them. The kernel releases a lock when its holder dies. Claims
of other users are read from /proc/locks, which names the holder of every lock: a file of another user counts as claimed
if a process of that user has locked it. So an account can keep a device from others only by a living process under its
own name, as it can by using the device.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import stat
import tempfile
import time
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

PREFIX = "/tmp/howdah-gpus"  # noqa: S108
_TRIES, _AGAIN_S = 20, 0.05


class NotEnoughGpus(Exception):
    """Fewer devices are free than asked for."""


def count(environment: Mapping[str, str]) -> int:
    """Count the devices of this node: HOWDAH_GPU_COUNT, or else /dev/nvidia0, /dev/nvidia1, ..."""
    given = environment.get("HOWDAH_GPU_COUNT", "")
    if given.isdigit():
        return int(given)
    return sum(1 for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name))


def assigned_by_engine(environment: Mapping[str, str]) -> bool:
    """Return whether the engine has named our devices ("all" is the word of images, not of engines)."""
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    return any(environment.get(name, "all") != "all" for name in names)


class GpuClaim:
    """Claims `wanted` devices out of `total`, by number, until `release` or the end of this process.

    Raises:
        NotEnoughGpus: other tasks hold them.
        OSError: nothing can be locked below /tmp.
    """

    def __init__(self, wanted: int, total: int, prefix: str = PREFIX) -> None:
        self.numbers: List[int] = []
        self._prefix, self._files = prefix, _lock_directories(prefix)
        self._locks: Dict[int, List[int]] = {}
        try:
            self._claim(wanted, total)
        except BaseException:
            self.release()
            raise

    def _claim(self, wanted: int, total: int) -> None:
        others = self._lock_gpus(wanted, total)
        for _ in range(_TRIES):
            # Another user may have claimed the same devices at the same moment: release them, and try again.
            if not any(number in self.numbers for number in _held_by_others(self._prefix, total)):
                break
            self._unlock_gpus()
            time.sleep(random.uniform(0.0, _AGAIN_S))  # noqa: S311
            others = self._lock_gpus(wanted, total)
        if len(self.numbers) < wanted:
            free, held = len(self.numbers), "".join(f"; {who} holds {number}" for number, who in sorted(others.items()))
            raise NotEnoughGpus(f"{wanted} GPUs are asked for, {free} of this node's {total} are free{held}")

    def _lock_gpus(self, wanted: int, total: int) -> Dict[int, str]:
        """Lock as many free devices as are wanted; return the devices that other users hold."""
        others = _held_by_others(self._prefix, total)
        directories = [os.readlink(f"/proc/self/fd/{file}") for file in self._files]
        for number in range(total):
            if len(self.numbers) == wanted:
                break
            locks = [] if number in others else _lock_in_all(directories, str(number))
            if locks:
                self.numbers.append(number)
                self._locks[number] = locks
        return others

    def _unlock_gpus(self) -> None:
        for file in [file for locks in self._locks.values() for file in locks]:
            os.close(file)
        self.numbers, self._locks = [], {}

    def release(self) -> None:
        """Release all devices."""
        self._unlock_gpus()
        for file in self._files:
            os.close(file)
        self._files = []


class GpuAssignment:
    """The devices of one task: those that the engine assigned, or else as many as the task asked for, claimed once."""

    def __init__(self, container: Mapping[str, str], note: Callable[[str], None]) -> None:
        self.container, self.note = container, note
        self.claim: Optional[GpuClaim] = None

    def add_to(self, variables: Dict[str, str], asked: int) -> None:
        """Put the devices into a program's `variables`. In a job without GPUs the variables stay as the node set them.

        Raises:
            NotEnoughGpus: other tasks hold them.
            OSError: GPUs can't be claimed on this node.
        """
        if assigned_by_engine(variables) or not asked:
            return
        total = count(self.container)
        if not total:
            self.note(f"{asked} GPUs were asked for, but this node shows none; the program sees what there is")
            return
        if self.claim is None:
            self.claim = GpuClaim(asked, total)
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(number) for number in self.claim.numbers)


def _lock_directories(prefix: str) -> List[int]:
    """Open this user's directories, and lock them so that systemd-tmpfiles does not remove them.

    There is one directory, unless two processes made the first one at the same moment; a device is locked in all of
    them. The name ends at random, because another account must not make the directory first.
    """
    own = f"{prefix}-{os.geteuid()}-"
    if not any(owner == os.geteuid() for _, owner in _directories(prefix)):
        made = tempfile.mkdtemp(prefix=os.path.basename(own), dir=os.path.dirname(own))
        os.chmod(made, 0o711)  # noqa: S103 - others may look at the files' numbers, which /proc/locks names
    files: List[int] = []
    try:
        for path, owner in _directories(prefix):
            if owner == os.geteuid():
                files.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
                fcntl.flock(files[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BaseException:
        for file in files:
            os.close(file)
        raise
    return files


def _directories(prefix: str) -> Iterator[Tuple[str, int]]:
    """Yield the directories of all users with the owner, if only the owner may write to it."""
    parent, start = os.path.split(prefix)
    for name in sorted(os.listdir(parent)):
        found = re.fullmatch(re.escape(start) + r"-(\d+)-\w+", name)
        if found is None:
            continue
        path = os.path.join(parent, name)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == int(found[1]) and not status.st_mode & 0o022:
            yield path, status.st_uid


def _lock_in_all(directories: List[str], name: str) -> List[int]:
    """Open and lock the files of this name; return none if another process has locked one of them."""
    files: List[int] = []
    try:
        for directory in directories:
            files.append(os.open(os.path.join(directory, name), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            fcntl.flock(files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        for file in files:
            os.close(file)
        if isinstance(error, BlockingIOError):
            return []
        raise
    return files


def _held_by_others(prefix: str, total: int) -> Dict[int, str]:
    """Find the devices that other users' processes hold: `user 1005 (pid 4711)`, by number."""
    held: Dict[int, str] = {}
    holders: Dict[int, List[int]] = {}
    for directory, owner in _directories(prefix):
        if owner == os.geteuid():
            continue
        holders = holders or _flock_holders()
        for number in range(total):
            try:
                inode = os.lstat(os.path.join(directory, str(number))).st_ino
            except (FileNotFoundError, PermissionError):
                continue
            for pid in holders.get(inode, ()):
                if _owner_of(pid) in (owner, None):
                    held[number] = f"user {owner} (pid {pid})"
    return held


def _flock_holders() -> Dict[int, List[int]]:
    """Find the processes that hold a file by flock, by the file's inode (proc(5), /proc/locks)."""
    found: Dict[int, List[int]] = {}
    with open("/proc/locks", "rb") as file:
        for line in file:
            words = line.split()
            if len(words) >= 6 and words[1] == b"FLOCK" and words[3] == b"WRITE":
                found.setdefault(int(words[5].rpartition(b":")[2]), []).append(int(words[4]))
    return found


def _owner_of(pid: int) -> Optional[int]:
    """Return the user of a process; None when the process is not visible."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return None
