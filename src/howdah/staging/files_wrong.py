"""The error of a job whose files are not as the job says."""

from __future__ import annotations

from howdah.errors import SpecError, StagingError


class FilesWrong(SpecError):
    """The job is written correctly, but files that it names are missing or unusable."""

    exit_code = StagingError.exit_code
