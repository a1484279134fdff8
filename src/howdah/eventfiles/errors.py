"""Defines the errors that only the event-file service knows; its other refusals are those of `howdah.errors`."""

from __future__ import annotations

from howdah.errors import HowdahError, StagingError


class FileUnreadable(StagingError):
    """A file has the wrong format or is incomplete, or its numbers cannot be read."""


class NoLibrary(HowdahError):
    """A library that the answer needs is not installed here."""
