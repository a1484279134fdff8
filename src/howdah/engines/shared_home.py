"""The home of an engine whose nodes see it as a directory under the same path, and need nothing else in common.

The home provides howdah's runtime archive, its Python if it brings one, and the job's files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets as random
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from howdah.engines import Progress, cleanup
from howdah.engines.job_directory import JobDirectory, write_secret
from howdah.engines.job_files import upload
from howdah.errors import HowdahError
from howdah.spec import JobReport, StagedFile, StagedJob, State, uris
from howdah.spec.codec import encode
from howdah.spec.staged import MODULES, PAGE, RUNTIME
from howdah.spec.view import JobView
from howdah.staging.working_directory import unpack_archive
from howdah.storage.content_cache import Cache
from howdah.storage.factory import filesystem
from howdah.supervisor.state import SUBMITTED
from howdah.wire import launch_messages
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX, Credentials

CONTAINERS = "containers"
"""The name, in a job's directory, of the directory that holds those of its containers."""
SUBMITTING = ".submitting-"
"""The prefix of the name of a job's directory before the job has a number."""
CLEAN_S, SUBMITTING_S = 0.3, 3600.0


class SharedHome:
    """The directory of one user's jobs and cache. `conf_dir` is the Hadoop configuration that the user's data needs."""

    def __init__(self, directory: Path, conf_dir: str = "") -> None:
        self.directory, self._conf_dir = directory, conf_dir

    @property
    def uri(self) -> str:
        """Return the URI of the home."""
        return uris.of_local(self.directory)

    @property
    def jobs(self) -> Path:
        """Return the directory of all jobs."""
        return self.directory / "jobs"

    def place(self, staged: StagedJob, progress: Progress) -> StagedJob:
        """Bring all files into the cache, and unpack there the archives from which howdah itself runs; return the job
        with their places.

        Raises:
            StagingError: a file is missing, or there is no room.
        """
        placed, python = upload(staged, Cache(self.uri, self._conf_dir, progress)), staged.python
        for file in (*placed.page, *(each for each in placed.runtime if each.kind == "archive")):
            directory = self.unpacked(file)
            if python.startswith(f"./{file.name}/"):  # an archive brings the nodes' Python
                python = str(directory / python.removeprefix(f"./{file.name}/"))
        return dataclasses.replace(
            placed,
            files=(*placed.files, *(file for file in placed.runtime if file.kind == "file")),
            runtime=tuple(file for file in placed.runtime if file.name == RUNTIME),
            python=python,
        )

    def unpacked(self, file: StagedFile) -> Path:
        """Return the directory with the content of an archive in the cache."""
        found = unpack_archive(Path(uris.path(file.uri)), self.directory / "cache")
        os.utime(found)  # it is in use
        return found

    def master_variables(self, placed: StagedJob) -> dict[str, str]:
        """Return the variables by which a master finds howdah, the page and the Hadoop configuration. `placed` is what
        `place` has returned."""
        paths = {file.name: str(self.unpacked(file)) for file in (*placed.runtime, *placed.page)}
        found = {"HADOOP_CONF_DIR": self._conf_dir, "HOWDAH_PAGE": paths.get(PAGE)}
        if RUNTIME in paths:
            found["PYTHONPATH"] = str(Path(paths[RUNTIME], MODULES))
        return {name: value for name, value in found.items() if value}

    def write_job(self, directory: Path, staged: StagedJob, secrets: Mapping[str, str], cluster: str) -> None:
        """Write the files from which the master starts into the directory of a job; only its owner may read it.
        `cluster` distinguishes the job's cluster from others that have the same home."""
        held = {JOB_KEY: random.token_bytes(32)}
        key = held[JOB_KEY].hex().encode()
        held |= {SECRET_PREFIX + name: os.fsencode(value) for name, value in secrets.items()}
        submitted = {"submitted": time.time(), "host": os.uname().nodename, "cluster": cluster}
        for name, content in (
            ("key", key),
            ("credentials", Credentials(secrets=held).to_bytes()),
            ("job.json", json.dumps(encode(staged), indent=1).encode()),
            (SUBMITTED, json.dumps(submitted).encode()),
        ):
            write_secret(directory / name, content)

    def report(self, job_id: str, engine: str, state_of: Callable[[JobView], tuple[State, str]]) -> JobReport:
        """Return the report of a job. `state_of` gets the view by the event log, and returns the job's state and its
        reason."""
        directory = JobDirectory(self.jobs / job_id)
        view, staged = directory.view(), directory.staged()
        spec = staged.job if staged is not None else view.job
        state, said = state_of(view)
        return JobReport(
            id=job_id,
            name=spec.name if spec is not None else "",
            state=state,
            engine=engine,
            user=staged.user if staged is not None else view.user,
            queue=spec.queue if spec is not None else "",
            submitted=directory.submitted(),
            started=view.running,
            finished=view.finished or (directory.last_change() if state.ended else 0.0),
            progress=view.progress,
            diagnostics=said,
            master=directory.master_url() if state is State.RUNNING else "",
            directory=uris.of_local(directory.path),
            conf_dir=self._conf_dir,
            tags=spec.tags if spec is not None else (),
        )

    def finish(self, report: JobReport) -> None:
        """Complete an ended job in place of its master; steps that fail now are left to the next call."""
        with contextlib.suppress(HowdahError):
            cleanup.finish_ended_job(filesystem(self.uri), report, self._conf_dir)
        shutil.rmtree(self.jobs / report.id / CONTAINERS, ignore_errors=True)

    def clean_up(
        self, find_ended: Callable[[str], JobReport | None], max_unused_s: float, oldest_job: Callable[[], float]
    ) -> None:
        """Remove the remains of killed clients, finish ended jobs whose master was killed, and clean the cache, as far
        as a moment suffices. `find_ended` returns the report of a job if it has ended; `oldest_job` is as in
        `Cache.clean`."""
        with contextlib.suppress(HowdahError, OSError):
            for directory in self.jobs.glob(f"{SUBMITTING}*"):
                if time.time() - directory.stat().st_mtime > SUBMITTING_S:
                    shutil.rmtree(directory, ignore_errors=True)
            for job_id in cleanup.list_unfinished_jobs(filesystem(self.uri), self.uri):
                if report := find_ended(job_id):
                    self.finish(report)
            Cache(self.uri).clean(max_unused_s, oldest_job, limit_s=CLEAN_S)


def make_container(job: Path, home: Path, container_id: str, key: bytes) -> dict[str, str]:
    """Make the directory of a container, with its key; return the variables by which the bootstrap finds both, and the
    cache. `job` is the job's directory."""
    directory = container_directory(job, container_id)
    directory.mkdir(parents=True, mode=0o700)
    write_secret(directory / "key", key.hex().encode())
    return {
        launch_messages.KEY_FILE: str(directory / "key"),
        launch_messages.CONTAINER_DIRECTORY: str(directory),
        launch_messages.CACHE_DIRECTORY: str(home / "cache"),
    }


def container_directory(job: Path, container_id: str) -> Path:
    """Return the directory of a container of the job whose directory is `job`."""
    return job / CONTAINERS / container_id
