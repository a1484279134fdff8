"""Makes a job like an earlier one, from the job file and the values that were kept at its submission."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from howdah.config.job_file import LoadedJob, load_text
from howdah.errors import Mistake, SpecError
from howdah.spec import redaction
from howdah.spec.job_file_keys import job_file_record
from howdah.spec.message import message
from howdah.spec.provenance import MAX_TEXT, Submission


def load_kept_job(
    job_id: str,
    submission: Submission,
    sets: Mapping[str, str],
    fields: Mapping[str, str],
    notice: Callable[[str], None],
) -> LoadedJob:
    """Return the job as it was submitted, with the values that replaced those of its file then, and with `sets` and
    `fields` on top of both. Variables of the present environment are not used. `notice` is called with the directory
    from which files are taken.

    Raises:
        SpecError: its job file was not kept, or not whole; a value was hidden because it looked secret; or what is
            wrong with `sets`.
    """
    if not submission.text:
        raise SpecError.at("--like", f"the job file of {job_id} was not kept")
    if len(submission.text) > MAX_TEXT:
        raise SpecError.at("--like", f"the job file of {job_id} was too long to be kept whole")
    if not submission.directory:
        notice(message("values that --set gave to {job} were not kept by that version of howdah", job=job_id))
    options = {name[2:]: value for name, value in submission.overrides.items() if name.startswith("--")}
    options = {name: value for name, value in options.items() if name not in sets}
    kept = {name: value for name, value in submission.overrides.items() if not name.startswith("--")}
    loaded = load_text(
        submission.text,
        Path(submission.file).name or job_id,
        _base_directory(submission, notice),
        {**kept, **sets},
        {},
        {**options, **fields},
    )
    if any(redaction.MASK in each for each in (submission.text, *submission.overrides.values())):
        hidden = [each for each in redaction.masked_places(job_file_record(loaded.spec)) if not _is_given(each, sets)]
        if hidden:
            raise SpecError([_hidden_value(place) for place in hidden])
    return loaded


def _is_given(place: str, sets: Mapping[str, str]) -> bool:
    """Return whether `--set` gives the value; then asterisks in it are the user's own."""
    return any(f"{place}.".startswith(f"{name}.") for name in sets)


def _hidden_value(place: str) -> Mistake:
    text = f"was hidden when the job was submitted: give it with --set {place}=VALUE, or name it under `secrets`"
    return Mistake(place, text)


def _base_directory(submission: Submission, notice: Callable[[str], None]) -> Path:
    """Return the directory at which relative paths of the job begin: the same as at the submission, if that was on this
    machine."""
    kept = Path(submission.directory)
    if submission.directory and submission.client == socket.gethostname() and kept.is_dir():
        notice(message("the job's files are taken from {directory}, as they are now", directory=kept))
        return kept
    here = Path.cwd()
    notice(
        message(
            "the job's files are taken from {directory}; the earlier job was submitted on {host} in {there}",
            directory=here,
            host=submission.client or "?",
            there=submission.directory or "?",
        )
    )
    return here
