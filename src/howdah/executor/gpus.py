"""GPUs of this node, each claimed by one executor at a time, where the engine deals none out.

A claim is a lock (flock) on a file per device in a directory all users of the node share; the kernel lets go of it
when its holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import re
from typing import Callable, Dict, List, Mapping, Optional

DIRECTORY = "/tmp/howdah-gpus"  # noqa: S108


class TooFew(Exception):
    """Fewer devices are free than asked for."""


def count(environment: Mapping[str, str]) -> int:
    """Devices of this node: HOWDAH_GPU_COUNT, else as many as there are /dev/nvidia0, /dev/nvidia1, ..."""
    given = environment.get("HOWDAH_GPU_COUNT", "")
    if given.isdigit():
        return int(given)
    return sum(1 for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name))


def dealt(environment: Mapping[str, str]) -> bool:
    """Whether the engine has said which devices are ours ("all" is what images say, not engines)."""
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    return any(environment.get(name, "all") != "all" for name in names)


class Claim:
    """`wanted` devices out of `total`, by number, ours until `release` or our death.

    Raises:
        TooFew: others hold them.
        OSError: `directory` cannot be used.
    """

    def __init__(self, wanted: int, total: int, directory: str = DIRECTORY) -> None:
        self.numbers: List[int] = []
        self._files: List[int] = []
        _share(directory)
        for number in range(total):
            if len(self.numbers) == wanted:
                break
            file = _lock(os.path.join(directory, str(number)))
            if file is not None:
                self.numbers.append(number)
                self._files.append(file)
        if len(self.numbers) < wanted:
            free = len(self.numbers)
            self.release()
            raise TooFew(f"{wanted} GPUs are asked for, {free} of this node's {total} are free")

    def release(self) -> None:
        """Give them back."""
        for file in self._files:
            os.close(file)
        self.numbers, self._files = [], []


class Deal:
    """The devices of one task: those that the engine dealt out, else as many as it asked for, claimed once."""

    def __init__(self, container: Mapping[str, str], note: Callable[[str], None]) -> None:
        self.container, self.note = container, note
        self.claim: Optional[Claim] = None

    def add_to(self, variables: Dict[str, str], asked: int) -> None:
        """Say in `variables` of a program which they are.

        Raises:
            TooFew: others hold them.
            OSError: nobody can claim any here.
        """
        if dealt(variables):
            return
        total = count(self.container)
        if asked and not total:
            self.note(f"{asked} GPUs were asked for, but this node shows none; the program sees what there is")
            return
        if asked and self.claim is None:
            self.claim = Claim(asked, total)
        numbers = self.claim.numbers if self.claim is not None else []
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(number) for number in numbers)


def _share(directory: str) -> None:
    try:
        os.mkdir(directory)
        os.chmod(directory, 0o1777)  # noqa: S103
    except FileExistsError:
        return


def _lock(path: str) -> Optional[int]:
    # Not O_CREAT on a file that exists: in a sticky directory Linux refuses that for another user's file.
    flags = os.O_RDONLY | os.O_NOFOLLOW
    try:
        file = os.open(path, flags)
    except FileNotFoundError:
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            file = os.open(path, flags)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
