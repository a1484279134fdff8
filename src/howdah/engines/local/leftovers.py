"""Removing what containers leave behind if their master cannot end them any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.local.processes import kill_marked
from howdah.wire import program_protocol


def kill_leftovers(name: str, groups: Iterable[str], whole: bool = False) -> None:
    """KILL all processes of a job's containers and remove their control groups, whose directories `groups` are.

    `name` is the job's id, or with `whole` that of one container.
    """
    for directory in filter(None, groups):
        group = MemoryGroup.at(directory)
        group.kill()
        group.remove()
    kill_marked(f"{name}\0" if whole else f"{name}.")


def remove_program_key(directory: Path) -> None:
    """Remove the key of the programs that ran in a container's directory; an executor that was killed could not."""
    shutil.rmtree(directory / program_protocol.DIRECTORY, ignore_errors=True)
