"""Defines the errors of the event-file service, by the reason why a request is not answered."""

from __future__ import annotations

from howdah.errors import HowdahError, StagingError


class Absent(HowdahError):
    """The job has no such run, tag, step, image, checkpoint or tensor."""


class Wrong(HowdahError):
    """The request is invalid, so it cannot be answered."""


class Unreadable(StagingError):
    """A file has the wrong format or is incomplete, or its numbers cannot be read."""


class NoLibrary(HowdahError):
    """A library that the answer needs is not installed here."""
