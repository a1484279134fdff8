"""The base of engines whose masters are detached processes of the submitting machine: they outlive the terminal.

A subclass defines the home, what `plan` refuses, and the address by which others reach the master. The job's directory
is below the home, on any file system. The files that belong to the process are on this machine (`control_directory`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import getpass
import json
import os
import platform
import secrets as random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.engines import MASTER_ATTEMPTS, Engine, MasterContext, Progress, cleanup, no_progress
from howdah.engines.job_files import JobFiles, read_pieces, upload
from howdah.engines.pull_launch import PullAllocator
from howdah.errors import EngineRejected, HowdahError, JobNotFound, StagingError
from howdah.localfiles.own_directories import state_directory
from howdah.outputs.commit import abandon, reserve
from howdah.spec import JobReport, Plan, StagedJob, State, TaskId, uris
from howdah.spec.codec import decode, encode
from howdah.spec.events import AllocationLost, CancelRequested, Event
from howdah.spec.message import message
from howdah.storage.content_cache import Cache
from howdah.storage.factory import filesystem
from howdah.wire import auth
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX, Credentials

CANCEL_LIMIT_S, LOGS_LIMIT_S, STEP_S = 15.0, 60.0, 0.1
"""`CANCEL_LIMIT_S`: seconds within which a master that is told to end must end, beyond the time in which its programs
may stop."""
EXECUTORS_LIVE_S = 60.0
"""Seconds after which executors have ended once their last master was killed; before that nothing of the job is cleaned
up."""
ATTEMPT, ATTEMPTS = "HOWDAH_MASTER_ATTEMPT", "HOWDAH_MASTER_ATTEMPTS"
"""The variables that tell the allocator the number of its master's attempt, and how many there are."""
# Starts the next attempt of a master that a signal ended, unless the job was cancelled; writes the last one's status.
_START = (
    'for n in $(seq "$1"); do HOWDAH_MASTER_ATTEMPT=$n "${@:2}"; echo $? > status; '
    "[ $(cat status) -gt 128 -a ! -e cancelled_by ] || exit 0; done"
)


def control_directory(engine: str, job_id: str) -> Path:
    """Return the directory of this machine with the files of a job's master process: `lock`, which the process holds,
    `pid`, `url`, `credentials`, `cancelled_by`, `status` and `master.log`."""
    return state_directory(os.environ).absolute() / engine / job_id


class DetachedMasterEngine(Engine):
    """Submits, describes and cancels jobs whose masters run here. A subclass defines `name`, `home` and `plan`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings, self._conf_dir = settings, settings.get("hadoop_conf_dir", "")

    @abstractmethod
    def master_environment(self, plan: Plan) -> Mapping[str, str]:
        """Return the variables of the master that name its address: HOWDAH_HOST, and HOWDAH_LISTEN if it differs."""

    @property
    def home_protects_secrets(self) -> bool:  # type: ignore[override]
        """Return whether the home has file modes; an object store has none."""
        return uris.split(self.home)[0] in ("file", "hdfs", "viewfs")

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        job_id = f"{self.name}-{time.strftime('%Y%m%d-%H%M%S')}-{random.token_hex(4)}"
        directory, control = uris.join(self.home, "jobs", job_id), control_directory(self.name, job_id)
        try:
            self._submit(directory, control, plan, secrets, progress)
        except BaseException as error:
            with contextlib.suppress(HowdahError):  # people need to know the first error
                abandon(plan.job.job, job_id, self._conf_dir)
            with contextlib.suppress(HowdahError):
                filesystem(directory, self._conf_dir).delete(directory)
            shutil.rmtree(control, ignore_errors=True)
            if isinstance(error, OSError):
                raise StagingError(f"{error.filename or directory}: {error.strerror or error}") from error
            raise
        self._clean_up()
        return job_id

    def _submit(
        self, directory: str, control: Path, plan: Plan, secrets: Mapping[str, str], progress: Progress
    ) -> None:
        files = filesystem(directory, self._conf_dir)
        files.mkdirs(directory, 0o700)
        control.mkdir(parents=True, mode=0o700)
        with (control / "lock").open("w") as lock:  # the masters inherit it: it is free when none is left
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(" ".join(_machine()))
            lock.flush()
            job_json = uris.join(directory, "job.json")
            files.write_bytes(job_json, json.dumps(encode(plan.job)).encode(), 0o600)
            reserve(plan.job.job, control.name, self._conf_dir, plan.job.sources)
            staged = dataclasses.replace(plan.job, page=())  # this machine has howdah's page
            placed = json.dumps(encode(upload(staged, Cache(self.home, self._conf_dir, progress)))).encode()
            files.write_bytes(job_json, placed, 0o600)
            key = random.token_bytes(32)
            _write(control / "job.json", placed)
            _write(control / "key", key.hex().encode())
            # The file's presence shows that the job is not over, even to users who may not read it.
            content = key.hex().encode() if self.home_protects_secrets else b""
            files.write_bytes(uris.join(directory, "key"), content, 0o600)
            held = {JOB_KEY: key, **{SECRET_PREFIX + name: os.fsencode(value) for name, value in secrets.items()}}
            _write(control / "credentials", Credentials(secrets=held).to_bytes())
            self._start_master(directory, control, plan, lock.fileno())

    def _start_master(self, directory: str, control: Path, plan: Plan, lock: int) -> None:
        command = [sys.executable, "-m", "howdah.master", "--engine", self.name, "--id", control.name]
        command += ["--directory", directory, "--job", str(control / "job.json")]
        attempts = str(plan.job.job.master.attempts or MASTER_ATTEMPTS)
        variables = {"HOWDAH_CREDENTIALS": str(control / "credentials"), ATTEMPTS: attempts}
        if self._conf_dir:
            variables["HADOOP_CONF_DIR"] = self._conf_dir
        with (control / "master.log").open("wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", _START, "bash", attempts, *command],
                cwd=control,
                env={**os.environ, **variables, **self.master_environment(plan)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
            )
        process.returncode = 0  # nobody waits for it here: it outlives this process
        try:
            (control / "pid").write_text(str(process.pid))
        except BaseException:  # the submission is undone, and a master with it
            os.killpg(process.pid, signal.SIGKILL)
            raise

    def _clean_up(self) -> None:
        """Clean up for killed masters; steps that fail now are left to the next submission."""
        files = filesystem(self.home, self._conf_dir)
        with contextlib.suppress(HowdahError, OSError):
            for job_id in cleanup.list_unfinished_jobs(files, self.home):
                control = control_directory(self.name, job_id)
                if is_locked(control / "lock") is not False:
                    continue
                if not (control / "gone").exists():
                    (control / "gone").touch()
                if time.time() - (control / "gone").stat().st_mtime > EXECUTORS_LIVE_S:
                    (control / "credentials").unlink(missing_ok=True)
                    with contextlib.suppress(HowdahError):  # the job's files may be damaged
                        for report in self.describe(job_id):
                            cleanup.finish_ended_job(files, report, self._conf_dir)

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        directories = self._directories(job_id)
        if job_id is None:
            directories = [uri for uri in directories if not _is_anothers(uri)]
        found = [report for directory in directories if (report := self._report(directory))]
        return sorted(found, key=lambda report: report.submitted, reverse=True)

    def _directories(self, job_id: str | None) -> list[str]:
        jobs, files = uris.join(self.home, "jobs"), filesystem(self.home, self._conf_dir)
        if not files.exists(jobs):
            return []
        found = [entry.uri for entry in files.children(jobs) if uris.name(entry.uri).startswith(f"{self.name}-")]
        return [uri for uri in found if job_id in (None, uris.name(uri))]

    def _report(self, directory: str) -> JobReport | None:
        job_id, files = uris.name(directory), JobFiles(directory, self._conf_dir)
        control = control_directory(self.name, job_id)
        has_master = is_locked(control / "lock")  # asked first: a job may end now, and its log then says so
        found = files.submitted()
        if found is None:
            return None
        (job, submitted), (view, changed) = found, files.view()
        state, finished = view.state, view.finished
        reason: str = view.outcome.diagnostics if view.outcome else ""
        if not state.ended and has_master is None:
            reason = message("its master runs on another machine, the one that submitted it")
        elif not state.ended and not has_master:
            by = _text(control / "cancelled_by")
            state, finished = State.CANCELLED if by else State.FAILED, changed or submitted
            reason = message("cancelled by {user}", user=by) if by else _why_gone(control)
        running = has_master is not False and not state.ended
        return JobReport(
            id=job_id,
            name=job.job.name if job is not None else "",
            state=state,
            engine=self.name,
            user=job.user if job is not None else view.user,
            submitted=submitted,
            started=view.started,
            finished=finished,
            progress=view.progress,
            diagnostics=reason,
            # The master, or the allocator for it, has written it down.
            master=(_text(control / "url") or files.master_url()) if running else "",
            directory=directory,
            conf_dir=self._conf_dir,
            tags=job.job.tags if job is not None else (),
        )

    def job_key(self, report: JobReport) -> bytes | None:
        key = super().job_key(report)
        return key if key is None or self.home_protects_secrets else self._own_key(report.id)

    def _own_key(self, job_id: str) -> bytes:
        try:
            return auth.read_key((control_directory(self.name, job_id) / "key").read_text())
        except ValueError as error:
            raise StagingError(f"the key of {job_id} is not a key: {error}") from None
        except OSError:
            raise StagingError(f"the key of {job_id} is on the machine that submitted it") from None

    def cancel(self, job_id: str) -> None:
        for directory in self._directories(job_id):
            control = control_directory(self.name, job_id)
            files = JobFiles(directory, self._conf_dir)
            lock = control / "lock"
            locked = is_locked(lock)
            if locked is None and not files.view()[0].state.ended:
                make = shlex.join(["mkdir", "-p", str(control)]) + " && " + shlex.join(["touch", str(lock)])
                remedy = f"empty {lock}" if lock.exists() else f"make an empty lock file, `{make}`"
                what = f"cancel the job there; if that machine is no more, or is this one by another name, {remedy}"
                raise EngineRejected(f"{job_id}: its master runs on another machine: {what}")
            if not locked or files.view()[0].state.ended or not (control / "pid").exists():
                continue
            (control / "cancelled_by").write_text(getpass.getuser())
            deadline = time.monotonic() + _stop_limit_s(control) + CANCEL_LIMIT_S
            _signal_group(control, signal.SIGTERM)
            while is_locked(lock) and time.monotonic() < deadline:
                time.sleep(STEP_S)
            if is_locked(lock):
                _signal_group(control, signal.SIGKILL)

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        directories = self._directories(job_id)
        if not directories:
            raise JobNotFound(f"{job_id} is not a job in {self.home}")
        yield from JobFiles(directories[0], self._conf_dir).read_logs(task, stream)
        if task is None and not stream:
            for piece in read_pieces(uris.of_local(control_directory(self.name, job_id) / "master.log")):
                yield f"master on {platform.node()}", piece

    def logs_complete(self, job_id: str) -> bool:
        deadline, lock = time.monotonic() + LOGS_LIMIT_S, control_directory(self.name, job_id) / "lock"
        while is_locked(lock) and time.monotonic() < deadline:  # the allocator may still bring logs
            time.sleep(STEP_S)
        return not is_locked(lock)


class DetachedMasterAllocator(PullAllocator):
    """The allocator of such a master. A subclass sets the engine's name, and calls `remove_secrets` at the end of
    `unregister`."""

    engine: str

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context)
        self._control = control_directory(self.engine, context.job_id)
        self._control.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._control / "url").write_text(context.url)
        self.attempt = int(os.environ.get(ATTEMPT, "1"))
        self.restarts = self.attempt < int(os.environ.get(ATTEMPTS, "1"))

    def signalled(self, name: str) -> Event:
        if by := _text(self._control / "cancelled_by"):
            return CancelRequested(time.time(), by)
        return AllocationLost(time.time(), f"signal {name}", comes_back=self.restarts)

    def remove_secrets(self) -> None:
        """Remove the files that only a running job needs: its credentials, and the key if the home does not have it."""
        if credentials := os.environ.get("HOWDAH_CREDENTIALS"):
            Path(credentials).unlink(missing_ok=True)
        (self._control / "key").unlink(missing_ok=True)


def _is_anothers(uri: str) -> bool:
    """Return whether a job's directory is one that this user may not enter: several users may share a home."""
    return uri.startswith("file:") and not os.access(uris.path(uri), os.R_OK | os.X_OK, effective_ids=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    path.touch(0o600)
    path.write_bytes(content)


def _text(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    return ""


def _machine() -> tuple[str, str]:
    """Return this machine's name, which may change, and a text that identifies the time since its last boot."""
    return os.uname().nodename, _text(Path("/proc/sys/kernel/random/boot_id"))


def is_locked(path: Path) -> bool | None:
    """Return whether a master holds the lock; None if another machine started the master. Two machines may share a home
    directory: it depends on the file system whether this machine sees a lock of the other, and the number of the
    other's process may be that of any process here."""
    try:
        file = path.open()
    except FileNotFoundError:
        return None
    with file:
        written = file.read().split()  # nothing by earlier versions
        if written and set(written).isdisjoint(_machine()):
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _stop_limit_s(control: Path) -> float:
    """Return the seconds within which the programs of the job may stop; 0 if its file cannot be read."""
    try:
        staged: StagedJob = decode(StagedJob, json.loads((control / "job.json").read_bytes()))
        return float(staged.job.stop_limit_s)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0.0


def _why_gone(control: Path) -> str:
    """Return why a master left no outcome: it could not begin, and its last line gives the reason, or it was killed."""
    lines = [line for line in _text(control / "master.log").splitlines() if line.strip()]
    if lines and 0 < int(_text(control / "status") or 0) <= 128:
        return message("the master failed: {reason}", reason=lines[-1].strip())
    return message("its master was killed")


def _signal_group(control: Path, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(int((control / "pid").read_text()), number)
