"""What the submitter noted of itself when it submitted a job, for those who ask later where it came from."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, Tuple

from howdah.spec.values import dataclass

MOST_TEXT, MOST_PACKAGES, MOST_WORDS = 32 << 10, 400, 100
"""Characters of the job file, packages, words of the command line: more are left out."""


@dataclass(frozen=True)
class Submission:
    """`file` is the job file's path as given and `text` what was in it; the commit is that of its folder. `packages`
    are versions by name, as the environment's lock file has them, `command` the command line without secrets; `client`
    is the submitting host, `time` epoch seconds. Secrets are never part of it."""

    file: str = ""
    text: str = ""
    git_commit: str = ""
    git_dirty: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    command: Tuple[str, ...] = ()
    client: str = ""
    user: str = ""
    time: float = 0.0
