"""Command lines of other systems. Each turns what the users of that system type into a JobSpec."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from howdah.spec import JobSpec


@dataclasses.dataclass(frozen=True)
class Parsed:
    """What a command line means."""

    job: JobSpec
    """The job that the command line describes."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The option or key that the user typed (`--worker-num`), by place of the spec (`roles.worker.replicas`)."""
    notes: tuple[str, ...] = ()
    """Sentences to show: what of this command line has another meaning here."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that this process needs to reach the job's data, and the values to which the spec's `secrets` refer."""
    conf_files: tuple[str, ...] = ()
    """Files that are laid over this machine's Hadoop configuration."""
    same_hosts: bool = False
    """Whether the job prefers the hosts on which the last job of its name succeeded."""


class CompatCommand(Protocol):
    """A command line of another system. Its files are relative to the directory in which the command is typed."""

    def parse(self, argv: Sequence[str]) -> Parsed:
        """Read the arguments after the command's name.

        Raises:
            SpecError: everything that is wrong with them, in the words of this command line.
        """
        ...


def engine_flags() -> dict[str, str | None]:
    """Return the settings that send a compat command's job to YARN, unless HOWDAH_ENGINE names an engine."""
    return {} if os.environ.get("HOWDAH_ENGINE") else {"engine": "yarn"}
