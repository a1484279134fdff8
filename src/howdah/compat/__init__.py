"""Other systems' command lines: each makes a JobSpec of what its users have always typed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from howdah.spec import JobSpec


@dataclass(frozen=True)
class Parsed:
    """`origins` gives for places of the spec (`roles.worker.replicas`) the words the user typed (`--worker-num`);
    `notes` are sentences to show: what this command line means differently here. `variables` are what this
    process needs to see the job's data, and the values that the spec's `secrets` refer to; `conf_files` lie over this
    machine's Hadoop configuration; with `same_hosts` the job prefers the hosts on which one of its name last ended
    well."""

    job: JobSpec
    origins: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    conf_files: tuple[str, ...] = ()
    same_hosts: bool = False


class Dialect(Protocol):
    """One command line. Its files are relative to where the command is typed."""

    def parse(self, argv: Sequence[str]) -> Parsed:
        """Read the arguments after the command's name.

        Raises:
            SpecError: everything that is wrong with them, in the words of this dialect.
        """
        ...


def engine_flags() -> dict[str, str | None]:
    """Return the settings that send a compat command's job to YARN, unless HOWDAH_ENGINE names an engine."""
    return {} if os.environ.get("HOWDAH_ENGINE") else {"engine": "yarn"}
