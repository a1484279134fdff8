"""Why a question is not answered."""

from __future__ import annotations

from howdah.errors import HowdahError, StagingError


class Absent(HowdahError):
    """There is no such run, tag, step, image, checkpoint or tensor in this job."""


class Wrong(HowdahError):
    """The question is none that can be answered."""


class Unreadable(StagingError):
    """A file that is none of its kind, or not all of one; numbers that can't be read."""


class NoLibrary(HowdahError):
    """What it takes is not installed here."""
