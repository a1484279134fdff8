"""Submits a job: fills its directory where no reader looks, then makes it appear complete, with a place in the queue.

Until it appears, the submitting process holds a lock on a file in the directory. If that lock is free, the process was
killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets as random
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from howdah.engines.job_directory import JobDirectory, write_secret
from howdah.engines.local.machine import Machine
from howdah.errors import HowdahError
from howdah.outputs.commit import abandon
from howdah.supervisor import launcher
from howdah.supervisor.masters import SECRETS
from howdah.supervisor.state import SUBMITTED, MachineState

_LOCK = "submitting.lock"


class LocalSubmission:
    """One submission: `begin`, any number of `write`, then `complete`; or `abort`, at any point."""

    def __init__(self, state: MachineState) -> None:
        self._state = state
        self._jobs = Path(state.jobs_directory)
        self._path = Path()
        self._lock = -1

    @property
    def job_id(self) -> str:
        """Return the job's id, known after `begin`."""
        return self._path.name

    @property
    def directory(self) -> Path:
        """Return the directory that the job will have."""
        return self._jobs / self.job_id

    def begin(self) -> None:
        """Make a directory with a new name.

        Raises:
            OSError: it cannot be made.
        """
        self._jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._state.change():  # it must be locked before it can pass for a killed one
            parent = Path(self._state.submitting_directory)
            parent.mkdir(exist_ok=True, mode=0o700)
            while True:
                self._path = parent / f"local-{time.strftime('%Y%m%d-%H%M%S')}-{random.token_hex(2)}"
                if not self.directory.exists():
                    with contextlib.suppress(FileExistsError):
                        self._path.mkdir(mode=0o700)
                        break
            self._lock = os.open(self._path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the job's directory that only its owner may read."""
        write_secret(self._path / name, content)

    def complete(self, wants: Sequence[int], machine: Machine) -> None:
        """Put the job into the queue, with its first demand of resources; the job is then submitted.

        Raises:
            OSError: it cannot be put there, or no supervisor can be started.
        """
        with self._state.change() as change:
            record = {"submitted": time.time(), "host": os.uname().nodename}
            self.write(SUBMITTED, json.dumps(record).encode())
            job = change.enqueue(self.job_id, wants, machine)
            try:
                self._path.rename(self.directory)
            except OSError:
                change.unlink(job)
                raise
        launcher.ensure_running(self._state)
        (self.directory / _LOCK).unlink(missing_ok=True)
        os.close(self._lock)

    def abort(self) -> bool:
        """Remove everything that the submission has made; return False if the supervisor has already admitted the
        job."""
        if self._lock < 0:
            return True
        with self._state.change() as change:
            if self.directory.exists():
                job = change.find(self.job_id)
                if job is None or self.job_id in change.entries:
                    return False
                self.directory.rename(self._path)
                change.remove(job)
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)
        return True


def remove_secrets_of_killed(state: MachineState) -> None:
    """Remove the secrets of submissions that were killed."""
    for path in _killed_submissions(state):
        for name in SECRETS:
            (path / name).unlink(missing_ok=True)


def remove_killed(state: MachineState, conf_dir: str) -> None:
    """Remove the remains of killed submissions; what cannot be removed now is left to the next call."""
    for path in _killed_submissions(state):
        staged = JobDirectory(path).staged()
        try:
            if staged is not None:
                abandon(staged.job, path.name, conf_dir)
        except HowdahError:
            continue
        shutil.rmtree(path, ignore_errors=True)


def _killed_submissions(state: MachineState) -> Iterator[Path]:
    """Yield the directories of submissions that were killed; each is locked while the caller works on it."""
    directory = Path(state.submitting_directory)
    for path in list(directory.iterdir()) if directory.exists() else ():
        with state.change():
            try:
                lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            except (FileNotFoundError, NotADirectoryError):  # completed or removed meanwhile
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
        try:
            yield path
        finally:
            os.close(lock)
