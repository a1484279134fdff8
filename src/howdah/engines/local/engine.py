"""The engine that needs no cluster: the same master and executors, as processes of this machine.

A job is a directory below `<state>/jobs`; its master runs in a session of its own, so that it outlives the terminal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import hashlib
import json
import os
import secrets as random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.data import uris
from howdah.data.commit import abandon, reserve
from howdah.data.fs import filesystem
from howdah.data.homes import state_directory
from howdah.data.logorder import STREAMS, TIMES
from howdah.engines import ATTEMPTS_WITHIN_S, MASTER_ATTEMPTS, Engine, Hindrance, Progress, silent, sweep
from howdah.engines.local.jobs import JobDirectory, write_secret
from howdah.engines.local.ledger import Ledger, clear
from howdah.engines.local.machine import Machine, figures, refusals, total
from howdah.engines.local.processes import start_of
from howdah.errors import EngineRejected, HowdahError, StagingError
from howdah.spec import JobReport, JobSpec, Outcome, Plan, StagedFile, StagedJob, State, TaskId
from howdah.spec.codec import encode
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX, Credentials

_PIECE = 1 << 20
_END_S = 5.0


class _Detached(subprocess.Popen[bytes]):
    """A process that is meant to outlive us: no warning when it does."""

    def __del__(self) -> None:
        self.poll()


class LocalEngine(Engine):
    """Settings: `local_home`, else HOWDAH_HOME, else the user's state directory. GPUs, memory and vcores: Machine."""

    name = "local"

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._home = Path(settings.get("local_home") or state_directory(os.environ)).absolute()
        self._masters: list[_Detached] = []

    @property
    def home(self) -> str:
        return uris.of_local(self._home)

    def plan(self, job: StagedJob) -> Plan:
        machine = Machine.here()
        problems = list(refusals(job.job, machine))
        if problems:
            raise EngineRejected("\n".join(f"job {job.job.name!r} can never run here: {one}" for one in problems))
        staged = dataclasses.replace(job, python=sys.executable, home=self.home, user=job.user or getpass.getuser())
        demand = {one.what: {"needs": one.wanted, "of": one.offered} for one in figures(job.job, machine)}
        return Plan(self.name, staged, {"machine": demand, "master": [sys.executable, "-m", "howdah.master"]})

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = silent) -> str:
        job = JobDirectory(self._new_directory())
        conf_dir = self._settings.get("hadoop_conf_dir", "")
        try:
            reserve(plan.job.job, job.id, conf_dir)
            self._write(job, _placed(plan.job, progress), secrets)
            self._start(job, plan.request["master"], plan.job.job.master.attempts or MASTER_ATTEMPTS)
            self._sweep(conf_dir)
        except BaseException as error:
            shutil.rmtree(job.path, ignore_errors=True)
            with contextlib.suppress(HowdahError):
                abandon(plan.job.job, job.id, conf_dir)
            if isinstance(error, OSError):
                raise StagingError(f"{error.filename or job.path}: {error.strerror or error}") from error
            raise
        return job.id

    def _sweep(self, conf_dir: str) -> None:
        """Look after jobs whose master was killed; what cannot be done now is for the next submission."""
        files = filesystem(self.home)
        with contextlib.suppress(HowdahError):
            for job_id in sweep.unfinished(files, self.home):
                report = JobDirectory(self._home / "jobs" / job_id).report()
                if report.state.ended:
                    clear(job_id, [])  # or what its executors still write would come after the tidying
                    with contextlib.suppress(HowdahError):
                        sweep.settle(files, report, conf_dir)

    def _new_directory(self) -> Path:
        jobs = self._home / "jobs"
        while True:
            path = jobs / f"local-{time.strftime('%Y%m%d-%H%M%S')}-{random.token_hex(2)}"
            try:
                jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            except OSError as error:
                raise StagingError(f"{error.filename}: {error.strerror}") from error
            return path

    def _write(self, job: JobDirectory, staged: StagedJob, secrets: Mapping[str, str]) -> None:
        key = random.token_bytes(32)
        held = {JOB_KEY: key, **{SECRET_PREFIX + name: os.fsencode(value) for name, value in secrets.items()}}
        (job.path / "job.json").write_text(json.dumps(encode(staged), indent=1), encoding="utf-8")
        write_secret(job.path / "key", key.hex().encode())
        write_secret(job.path / "credentials", Credentials(secrets=held).to_bytes())

    def _start(self, job: JobDirectory, command: list[str], attempts: int) -> None:
        arguments = ["--engine", self.name, "--id", job.id, "--job", str(job.path / "job.json")]
        conf_dir = self._settings.get("hadoop_conf_dir")
        inherited = {**os.environ, "HADOOP_CONF_DIR": conf_dir} if conf_dir else os.environ
        environment = {**inherited, "HOWDAH_CREDENTIALS": str(job.path / "credentials"), "HOWDAH_HOST": "127.0.0.1"}
        with (job.path / "master.log").open("ab") as log:
            master = _Detached(
                [*_warden(attempts), *command, *arguments, "--directory", uris.of_local(job.path)],
                # Not in the caller's directory, whose files could pass for modules.
                cwd=job.path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        job.note_master(master.pid, start_of(master.pid))
        self._masters.append(master)

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        for master in self._masters:
            master.poll()
        return [job.report() for job in self._jobs(job_id)]

    def _jobs(self, job_id: str | None) -> list[JobDirectory]:
        jobs = self._home / "jobs"
        if job_id is not None:
            found = [jobs / job_id] if job_id == Path(job_id).name and (jobs / job_id).is_dir() else []
        else:
            found = sorted(jobs.glob("local-*"), key=lambda path: path.stat().st_ctime, reverse=True)
        return [JobDirectory(path) for path in found]

    def cancel(self, job_id: str) -> None:
        for job in self._jobs(job_id):
            if job.report().state.ended:
                continue
            pid = job.master_pid()
            if pid and not self._ends(job, pid, signal.SIGTERM):
                self._ends(job, pid, signal.SIGKILL)
            clear(job.id, [])
            Ledger(self._home / "local", Machine.here(), job.id).sweep()
            if not job.view().state.ended:
                job.finish(Outcome(State.CANCELLED, f"cancelled by {getpass.getuser()}; the master had to be killed"))

    def _ends(self, job: JobDirectory, pid: int, number: int) -> bool:
        """Whether the master has ended soon after a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + _END_S
        while job.master_pid() and time.monotonic() < deadline:
            time.sleep(0.02)
        return not job.master_pid()

    def hindrances(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[Hindrance]:
        if job is None or not missing:
            return []
        wanted = [job.roles[role].resources for role, count in missing.items() for _ in range(count)]
        said = Ledger(self._home / "local", Machine.here(), job_id).shortage(total(wanted if job.gang else wanted[:1]))
        return [Hindrance("said", {"text": said})] if said else []

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        for job in self._jobs(job_id):
            for slug, attempt, directory in job.attempts():
                role, _, index = slug.rpartition("-")
                if task is None or slug == task.slug:
                    yield from _attempt_logs(f"{role}:{index} attempt {attempt}", directory, stream)
            if task is None and not stream:
                yield from _read(job.path / "master.log", "master")


def _warden(attempts: int) -> list[str]:
    """By its path, alone: it needs nothing that is installed."""
    return [
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("warden.py")),
        str(attempts),
        str(ATTEMPTS_WITHIN_S),
    ]


def _attempt_logs(heading: str, directory: Path, stream: str) -> Iterator[tuple[str, bytes]]:
    names = (*STREAMS, TIMES) if stream == "*" else (stream,) if stream else STREAMS
    for name in names:
        yield from _read(directory / name, f"{heading} {name}")
    if not stream and not (directory / "stdout").exists():
        yield from _read(directory / "executor.log", f"{heading} executor")


def _read(path: Path, heading: str) -> Iterator[tuple[str, bytes]]:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield heading, piece


def _placed(staged: StagedJob, progress: Progress) -> StagedJob:
    """With its files in the cache: the job runs with what was there when it was submitted."""
    wanted = [file for file in staged.files if file.source or not file.uri.startswith("file:")]
    if not wanted:
        return staged
    # Not worth its import for a job without files.
    from howdah.data import transfer
    from howdah.data.cache import Cache
    from howdah.data.download import Copy

    cache = Cache(staged.home, progress=progress)
    placed = []
    for file in staged.files:
        if not file.uri.startswith("file:"):
            target = _cached(staged.home, file)
            transfer.download([Copy(uris.path(target), file.uri, file.size)], lambda _files, _bytes: None)
            file = dataclasses.replace(file, uri=target)
        placed.append(cache.place(file))
    return dataclasses.replace(staged, files=tuple(placed))


def _cached(home: str, file: StagedFile) -> str:
    """Where a file of a cluster is kept here: its address, size and time stand for a content we have not seen."""
    seen = f"{file.uri} {file.size} {file.modified_ms}"
    digest = hashlib.sha256(seen.encode()).hexdigest()
    return uris.join(home, "cache", digest[:2], f"{digest}-{uris.name(file.uri)}")
