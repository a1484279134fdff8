"""What the submitter recorded about a submission, so that users can find out later where the job came from."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, Tuple

from howdah.spec.values import dataclass

MAX_TEXT, MAX_PACKAGES, MAX_WORDS = 32 << 10, 400, 100
"""The most characters of the job file, packages, and words of the command line; more are left out."""


@dataclass(frozen=True)
class Submission:
    """The submitter's record of the submission. Secrets are never part of it."""

    file: str = ""
    """The job file's path, as the user gave it."""
    text: str = ""
    """The text of the job file."""
    git_commit: str = ""
    """The git commit of the job file's directory; "" when it is in no repository."""
    git_dirty: bool = False
    """The directory had changes that were not committed."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of packages by name, from the environment's lock file."""
    command: Tuple[str, ...] = ()
    """The command line."""
    client: str = ""
    """The host of the submitter."""
    user: str = ""
    """The user who submitted the job."""
    directory: str = ""
    """The directory at which the job file's relative paths begin; "" for jobs of earlier versions."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Options that replaced values of the job file: `--set` and variables of the environment by the name of a variable
    or the path of a field, other options by their names with `--`."""
    time: float = 0.0
    """When the job was submitted, in epoch seconds."""
