"""Command lines of other systems. Each module turns the command line of one system's users into a JobSpec."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from howdah.spec import JobSpec
from howdah.spec.validation import added_entries


@dataclasses.dataclass(frozen=True)
class Parsed:
    """The meaning of a command line."""

    job: JobSpec
    """The job that the command line describes."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The option or key that the user typed (`--worker-num`), by place of the spec (`roles.worker.replicas`)."""
    notes: tuple[str, ...] = ()
    """Sentences to show about parts of the command line that have another meaning here."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables with which this process can reach the job's data, and the values to which the spec's `secrets`
    refer."""
    conf_files: tuple[str, ...] = ()
    """Files that override this machine's Hadoop configuration."""
    same_hosts: bool = False
    """Whether the job prefers the hosts on which the last job of its name succeeded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "job", _extend_variables(self.job))


def _extend_variables(job: JobSpec) -> JobSpec:
    """Move variables such as `PATH=/x:$PATH` to `extend`, and return the job: in the other system a node's shell
    completed their values."""
    extend = dict(job.extend)

    def others(env: Mapping[str, str]) -> dict[str, str]:
        kept = {}
        for name, value in env.items():
            if (added := added_entries(name, value)) is None:
                kept[name] = value
            else:
                extend[name] = _around(name, extend.get(name, ""), added)
        return kept

    roles = {name: dataclasses.replace(role, env=others(role.env)) for name, role in job.roles.items()}
    return dataclasses.replace(job, env=others(job.env), roles=roles, extend=extend)


def _around(name: str, present: str, added: str) -> str:
    """Return the value that extends a variable by `added`, after `present` has extended it."""
    own, parts = f"${name}", added.split(":")
    if own not in parts:
        return ":".join(filter(None, (present, added)))
    inner = present if own in present.split(":") else ":".join(filter(None, (own, present)))
    return ":".join(inner if part == own else part for part in parts)


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
