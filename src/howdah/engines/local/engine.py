"""The engine that needs no cluster: it runs the same master and executors, as processes of this machine.

A job is a directory below `<home>/jobs`, with a place in the queue of this machine. The supervisor (howdah.supervisor)
starts the job's master in a session of its own, so that the master outlives the terminal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import getpass
import hashlib
import json
import os
import secrets as random
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.engines import MASTER_ATTEMPTS, Engine, PendingReason, Progress, no_progress
from howdah.engines.job_directory import JobDirectory
from howdah.engines.local.jobs import JobPositions, job_report, unreadable_report
from howdah.engines.local.machine import Machine, demands, first_demand, refusals
from howdah.engines.local.resource_ledger import explain_shortage, total
from howdah.engines.local.submission import LocalSubmission, remove_killed, remove_secrets_of_killed
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError, StagingError
from howdah.localfiles.own_directories import state_directory
from howdah.outputs.commit import abandon, reserve
from howdah.spec import JobReport, JobSpec, Plan, StagedFile, StagedJob, State, TaskId, uris
from howdah.spec.codec import encode
from howdah.supervisor import launcher
from howdah.supervisor.masters import START, start_record
from howdah.supervisor.state import MachineState, StateFileDamaged, decide_end
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX, Credentials

_CANCEL_LIMIT_S, _CANCEL_POLL_S = 15.0, 0.02
_PROCESS_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that say nothing about the file that could not be read."""


class LocalEngine(Engine):
    """Runs jobs on this machine. Its directory is the setting `local_home`, else HOWDAH_HOME, else the user's state
    directory; `Machine` describes its GPUs, memory and vcores."""

    name = "local"
    one_machine = True

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._home = Path(settings.get("local_home") or state_directory(os.environ)).absolute()
        self._state = MachineState.for_home(str(self._home))

    @property
    def home(self) -> str:
        """Return the URI of howdah's directory of state on this machine."""
        return uris.of_local(self._home)

    def plan(self, job: StagedJob) -> Plan:
        machine = Machine.detect()
        problems = [f"job {job.job.name!r} can never run here: {problem}" for problem in refusals(job.job, machine)]
        if problems:
            raise EngineRejected("\n".join(problems))
        staged = dataclasses.replace(job, python=sys.executable, home=self.home, user=job.user or getpass.getuser())
        demand = {each.what: {"needs": each.wanted, "of": each.offered} for each in demands(job.job, machine)}
        return Plan(self.name, staged, {"machine": demand, "master": [sys.executable, "-m", "howdah.master"]})

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        conf_dir = self._settings.get("hadoop_conf_dir", "")
        submission = LocalSubmission(self._state)
        try:
            with _translate_os_errors(StagingError):
                submission.begin()
                self._submit(submission, plan, secrets, progress)
        except BaseException:
            if submission.abort():
                with contextlib.suppress(HowdahError):
                    abandon(plan.job.job, submission.job_id, conf_dir)
                raise
        with contextlib.suppress(OSError, StateFileDamaged):
            remove_killed(self._state, conf_dir)
        return submission.job_id

    def _submit(self, submission: LocalSubmission, plan: Plan, secrets: Mapping[str, str], progress: Progress) -> None:
        job = plan.job.job
        submission.write("job.json", _as_json(plan.job))  # needed to clean up after a killed submission
        reserve(job, submission.job_id, self._settings.get("hadoop_conf_dir", ""), plan.job.sources)
        placed = _with_cached_files(plan.job, progress)
        if placed is not plan.job:
            submission.write("job.json", _as_json(placed))
        key = random.token_bytes(32)
        held = {JOB_KEY: key, **{SECRET_PREFIX + name: os.fsencode(value) for name, value in secrets.items()}}
        submission.write("key", key.hex().encode())
        submission.write("credentials", Credentials(secrets=held).to_bytes())
        submission.write(START, self._start_record(submission, plan))
        submission.complete(first_demand(job), Machine.detect())

    def _start_record(self, submission: LocalSubmission, plan: Plan) -> bytes:
        directory = submission.directory
        command = [*plan.request["master"], "--engine", self.name, "--id", submission.job_id]
        command += ["--job", str(directory / "job.json"), "--directory", uris.of_local(directory)]
        variables = {"HOWDAH_CREDENTIALS": str(directory / "credentials"), "HOWDAH_HOST": "127.0.0.1"}
        if conf_dir := self._settings.get("hadoop_conf_dir"):
            variables["HADOOP_CONF_DIR"] = conf_dir
        return start_record(command, variables, plan.job.job.master.attempts or MASTER_ATTEMPTS)

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        with _translate_os_errors(EngineUnavailable):
            self._state.check_owner()
            paths = self._paths(job_id)  # before the positions: none of them has jobs that are submitted afterwards
            own = JobPositions(self._state)
            found = self._reports(paths, {"": own, os.uname().nodename: own})
            if own.any_open:  # a supervisor that was killed is started again here
                launcher.ensure_running(self._state)
            if job_id is None:
                remove_secrets_of_killed(self._state)
        return sorted(found, key=lambda report: report.submitted, reverse=True)

    def _reports(self, paths: list[Path], positions: dict[str, JobPositions]) -> list[JobReport]:
        """Return the reports of jobs, also of other machines' if they share the home directory; `positions` are by
        machine."""
        found = []
        for path in paths:
            job = JobDirectory(path)
            try:
                host = job.host
                if host not in positions:
                    positions[host] = JobPositions(MachineState.for_home(str(self._home), host))
                found.append(job_report(job, positions[host]))
            except FileNotFoundError:  # removed meanwhile
                continue
            except OSError as error:
                if error.errno in _PROCESS_LIMITS:
                    raise
                found.append(unreadable_report(path, error))
        return found

    def _paths(self, job_id: str | None) -> list[Path]:
        jobs = self._home / "jobs"
        if job_id is not None:
            exists = os.path.isdir(jobs / job_id)  # noqa: PTH112 - False also for a name that no file can have
            return [jobs / job_id] if exists and job_id == Path(job_id).name and job_id.startswith("local-") else []
        return list(jobs.glob("local-*"))

    def cancel(self, job_id: str) -> None:
        user = getpass.getuser()
        for path in self._paths(job_id):
            host, stop_s = JobDirectory(path).host, _stop_limit_s(path)
            if host not in ("", os.uname().nodename):
                raise EngineRejected(f"{job_id} runs on {host}: it can be cancelled there")
            with _translate_os_errors(EngineUnavailable):
                with self._state.change() as change:
                    waiting, entry = change.find(job_id), change.entries.get(job_id)
                    if entry is None and waiting is not None:
                        decide_end(change.admit(waiting), State.CANCELLED.value, f"cancelled by {user}")
                    elif entry is None or "end" in entry or "left" in entry:
                        continue
                    else:
                        entry.update(cancel=user, stop_s=stop_s)
                launcher.ensure_running(self._state)
            deadline = time.monotonic() + stop_s + _CANCEL_LIMIT_S
            while not self.describe(job_id)[0].state.ended and time.monotonic() < deadline:
                time.sleep(_CANCEL_POLL_S)

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        with _translate_os_errors(EngineUnavailable):
            positions = JobPositions(self._state)
        reason = positions.waiting_reason(job_id) or ("" if missing else positions.no_room)
        if job is not None and missing:
            wanted = [job.roles[role].resources for role, count in missing.items() for _ in range(count)]
            asked = total(wanted if job.gang else wanted[:1])
            reason = explain_shortage(positions.entries, asked, Machine.detect())
        return [PendingReason("said", {"text": reason})] if reason else []

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        for job in map(JobDirectory, self._paths(job_id)):
            yield from job.read_logs(task, stream)


@contextlib.contextmanager
def _translate_os_errors(kind: type[HowdahError]) -> Iterator[None]:
    """Raise errors of this machine's files and processes as errors of howdah."""
    try:
        yield
    except StateFileDamaged as error:
        raise EngineUnavailable(str(error)) from error
    except OSError as error:
        raise kind(": ".join(str(part) for part in (error.filename, error.strerror or error) if part)) from error


def _as_json(staged: StagedJob) -> bytes:
    return json.dumps(encode(staged), indent=1).encode()


def _with_cached_files(staged: StagedJob, progress: Progress) -> StagedJob:
    """Return the job with its files in the cache, so that it runs with their content at the time of submission."""
    wanted = [file for file in staged.files if file.source or not file.uri.startswith("file:")]
    if not wanted:
        return staged
    # Not worth its import for a job without files.
    from howdah.inputs import transfer
    from howdah.storage.content_cache import Cache
    from howdah.wire.helper_messages import FileCopy

    cache = Cache(staged.home, progress=progress)
    placed = []
    for file in staged.files:
        if not file.uri.startswith("file:"):
            target = _cache_path(staged.home, file)
            transfer.download([FileCopy(uris.path(target), file.uri, file.size)], no_progress)
            file = dataclasses.replace(file, uri=target)
        placed.append(cache.place(file))
    return dataclasses.replace(staged, files=tuple(placed))


def _stop_limit_s(directory: Path) -> float:
    """Return the seconds within which the programs of the job may stop; 0 if its file cannot be read."""
    with contextlib.suppress(OSError):
        staged = JobDirectory(directory).staged()
        return staged.job.stop_limit_s if staged is not None else 0.0
    return 0.0


def _cache_path(home: str, file: StagedFile) -> str:
    """Return where a file of a cluster is kept on this machine. Its URI, size and time stand for its content, which
    has not been read yet."""
    seen = f"{file.uri} {file.size} {file.modified_ms}"
    digest = hashlib.sha256(seen.encode()).hexdigest()
    return uris.join(home, "cache", digest[:2], f"{digest}-{uris.name(file.uri)}")
