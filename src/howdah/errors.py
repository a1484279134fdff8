"""Every error a user can meet, split by who must act.

HowdahError
├── SpecError            the user edits the job: one `Mistake` per thing that is wrong, all at once
├── StagingError         a file or directory is missing, forbidden, full, or in the way
├── EngineUnavailable    the cluster does not answer: try again, or correct the address
├── EngineRejected       the cluster answers no: unknown queue, too large an ask, no permission
└── JobFailed            the job ran and failed: look at the task it names

A message names the place, the value, what is allowed and what to do. Lower libraries' errors are mapped
where they enter howdah and nowhere else; anything that is not a HowdahError is a bug and keeps its traceback.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence


class HowdahError(Exception):
    """`exit_code` is the command line's documented exit status (docs/exit-codes.md)."""

    exit_code = 70


@dataclass(frozen=True)
class Mistake:
    """One thing wrong with a job.

    `place` is a path into the spec (`roles.worker.replicas`), `origin` the words the user typed it with
    (`--worker-num`, `job.yaml:12`) where they are known, `nearest` the closest valid name for a misspelt one.
    """

    place: str
    problem: str
    nearest: Optional[str] = None
    origin: Optional[str] = None

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        origin = f" ({self.origin})" if self.origin else ""
        return f"{self.place}: {self.problem}{hint}{origin}"


class SpecError(HowdahError):
    """The job description is wrong. `mistakes` holds all of them, in reading order."""

    exit_code = 64

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = tuple(mistakes)

    @classmethod
    def at(cls, place: str, problem: str, nearest: Optional[str] = None) -> SpecError:
        """A SpecError of a single mistake."""
        return cls([Mistake(place, problem, nearest)])


class StagingError(HowdahError):
    """A file could not be read, written, found or moved."""

    exit_code = 66


class EngineUnavailable(HowdahError):
    """The engine does not answer; the message says where, for how long, and which setting names it."""

    exit_code = 69


class EngineRejected(HowdahError):
    """The engine refuses the job or the call."""

    exit_code = 77


class JobFailed(HowdahError):
    """The job ended without success; the message is its diagnostics."""

    exit_code = 1


class JobCancelled(JobFailed):
    """The job was cancelled."""

    exit_code = 2
