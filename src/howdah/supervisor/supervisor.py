"""Runs one user's jobs on this machine: starts masters when there is room, and settles jobs whose master can't.

It starts the masters of waiting jobs when there is room for them, in the order of submission, and the next attempt of a
master that was killed. When a master cannot record how its job ended, a helper process that the supervisor starts does
it. The supervisor exits when no job is left.

Each turn of its loop examines all of the jobs' directory (howdah.supervisor.state). So it does not matter what woke it,
or what a killed supervisor has left half done. The masters live on, and the next command that shows or runs a job
starts the next supervisor, which recognises living masters by their locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import stat
import sys
import time

from howdah.supervisor.masters import lock_job, master_pid, read_start_record, remove_secrets, start_master
from howdah.supervisor.state import (
    MachineState,
    StateChange,
    StateFileDamaged,
    check_owner,
    decide_end,
    has_room,
    unlink,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from howdah.supervisor.state import Entry, WaitingJob

LOOK_S, LOOK_SOON_S = 60.0, 1.0
"""Seconds between two turns when nothing wakes the supervisor. The second value holds while it waits for something that
does not wake it, such as the end of a master that another supervisor has started."""
KILLED_WITHIN_S = 600.0
"""Masters that were killed longer ago do not count towards `master.attempts`."""
TRY_WITHIN_S, TRY_AGAIN_S = 600.0, 5.0
"""Seconds for which a failing action is repeated, and seconds between two tries; it may fail because this user has too
many processes, for instance."""
TERM_S = 5.0
"""Seconds between the request to a master to cancel its job and killing the master, in addition to the time in which
its programs may stop."""
SETTLE_S, SETTLE_AGAIN_S, SETTLE_TRIES = 120.0, 5.0, 3
"""Limit of one helper that settles a job, the pause after its first failure, and how often it may fail."""
MAX_HELPERS = 4
"""Helpers at once: each is a Python process with all of howdah, and a reboot may have ended a hundred jobs."""
_LAST_LINE_BYTES = 4096


class Supervisor:
    """One supervisor process. `run` returns when no job is left."""

    def __init__(self, state: MachineState) -> None:
        self.state = state
        self.masters: dict[str, int] = {}
        """The process id of each master that is a child of this process, by job."""
        self.exit_codes: dict[str, int] = {}
        """The exit codes of masters since the last turn that was written, as returned by os.waitstatus_to_exitcode."""
        self.helpers: dict[str, tuple[int, float]] = {}
        """The helper that settles each job: its process id, and its deadline."""
        self.settled: set[str] = set()
        """Jobs whose helper has succeeded since the last turn that was written."""
        self.failed_tries: dict[str, tuple[int, float]] = {}
        """How often settling a job has failed, and when to try again."""
        self.start_records: dict[str, dict[str, Any]] = {}
        """The start records of masters whose jobs are being settled: the helpers need the same variables."""
        self.problems: dict[str, tuple[float, float]] = {}
        """By job, since when every action for it has failed, and when to try again."""
        self.term_sent: dict[str, float] = {}
        """When the master of a job that is to be cancelled was sent SIGTERM."""
        self.watches_locks = False
        """Whether a master lives that is no child of this process."""
        self.problem = ""
        """Why the state could not be changed in the last turn."""
        self.no_room = ""
        """Why the first job of the queue is not started although it has its memory, cores and GPUs."""
        self._wakeup, signalled = os.pipe()
        for end in (self._wakeup, signalled):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> int:
        """Serve the jobs until none is left; return the exit status."""
        lock = os.open(self.state.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another supervisor is there
            return 0
        with contextlib.suppress(OSError):  # for users to read: a full disk keeps no supervisor from its jobs
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
        fifo = _open_fifo(self.state.wake_fifo)
        while True:
            self._reap()
            try:
                with self.state.change() as change:
                    self._handle_jobs(change)
                    if self._may_exit(change):
                        # A command that submits a job after this change finds no supervisor, and starts one.
                        os.close(lock)
                        os.close(fifo)
                        return 0
                self.problem = ""
                self.exit_codes.clear()
                self.settled.clear()
            except OSError as error:  # a full disk, for instance: nothing was changed, the next turn decides again
                if str(error) != self.problem:
                    self.problem = str(error)
                    _log(f"the state of the jobs cannot be changed, trying again: {error}")
            self._wait(fifo)

    def _may_exit(self, change: StateChange) -> bool:
        """Return whether to exit. Jobs whose settling has failed too often are left to the next supervisor."""
        given_up = {job_id for job_id, (count, _) in self.failed_tries.items() if count >= SETTLE_TRIES}
        waits = any(not self._has_ended(job.job_id) for job in self.state.waiting())
        return not self.helpers and not waits and not change.entries.keys() - given_up

    def _has_ended(self, job_id: str) -> bool:
        """Return whether a job that is still in the queue has ended: its file there could not be removed."""
        return not _exists(self._directory(job_id)) or _has_end(self._directory(job_id))

    def _wait(self, fifo: int) -> None:
        busy = (self.watches_locks, self.term_sent, self.helpers, self.failed_tries, self.problems)
        soon = any((*busy, self.problem, self.no_room))
        select.select([fifo, self._wakeup], [], [], LOOK_SOON_S if soon else LOOK_S)
        for file in (fifo, self._wakeup):
            try:
                os.read(file, 1 << 16)
            except BlockingIOError:
                continue

    def _reap(self) -> None:
        """Record how children have ended."""
        masters = {pid: job_id for job_id, pid in self.masters.items()}
        helpers = {pid: job_id for job_id, (pid, _) in self.helpers.items()}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            if pid in masters:
                del self.masters[masters[pid]]
                self.exit_codes[masters[pid]] = code
            elif pid in helpers:
                self._helper_ended(helpers[pid], code)

    def _helper_ended(self, job_id: str, code: int) -> None:
        del self.helpers[job_id]
        if code == 0:
            self.settled.add(job_id)
            self.failed_tries.pop(job_id, None)
            return
        count = self.failed_tries.get(job_id, (0, 0.0))[0] + 1
        self.failed_tries[job_id] = (count, time.monotonic() + SETTLE_AGAIN_S * count)
        _log(f"{job_id}: the helper that settles it ended with {code}, for the {count}. time")

    # Decisions

    def _handle_jobs(self, change: StateChange) -> None:
        """Decide about every job; first about the jobs whose end may make room for others."""
        self.watches_locks, before, self.no_room = False, self.no_room, ""
        for job_id in list(change.entries):
            self._try_to_handle(change, job_id)
        for job in self.state.waiting():
            if not self._admit(change, job):
                break
            if job.job_id in change.entries:
                self._try_to_handle(change, job.job_id)
        if self.no_room not in ("", before):
            _log(f"no job is started, trying again: {self.no_room}")

    def _admit(self, change: StateChange, job: WaitingJob) -> bool:
        """Take the first waiting job out of the queue; return False when there is no room for it yet."""
        if job.job_id in change.entries or self._has_ended(job.job_id):
            # The process that moved the job to the ledger, or submitted it, was killed between two steps.
            change.remove(job)
            return True
        try:
            wants, machine = self.state.demand(job)
        except StateFileDamaged as error:
            entry = change.admit(job)
            self._end(job.job_id, entry, "FAILED", str(error))
            return True
        if not has_room(change.entries, wants, machine) or not self._has_disk_room():
            return False
        change.admit(job, wants)
        return True

    def _has_disk_room(self) -> bool:
        """Return whether there is disk space for the files of a master; without space it could not even report that."""
        try:
            self.state.check_room()
        except OSError as error:
            self.no_room = str(error)
        return not self.no_room

    def _try_to_handle(self, change: StateChange, job_id: str) -> None:
        """Handle one job, whose failure must not stop the others."""
        now = time.monotonic()
        since, not_before = self.problems.get(job_id, (now, 0.0))
        if now < not_before:
            return
        try:
            self._handle(change, job_id)
            self.problems.pop(job_id, None)
        except OSError as error:
            _log(f"{job_id}: {error}")
            self.problems[job_id] = (since, now + TRY_AGAIN_S)
            if now - since > TRY_WITHIN_S and "end" not in change.entries[job_id]:
                self._end(job_id, change.entries[job_id], "FAILED", f"the master cannot be started: {error}")

    def _handle(self, change: StateChange, job_id: str) -> None:
        """Decide about a job in the ledger, and act on the decision.

        Raises:
            OSError: there is no room for a process or an open file, or the job's directory cannot be used.
        """
        entry, directory = change.entries[job_id], self._directory(job_id)
        try:
            check_owner(directory)
        except PermissionError as error:  # nothing there is run, written or removed
            _log(f"{job_id} is left alone: {error}")
            self._forget(job_id)
            del change.entries[job_id]
            return
        if job_id in self.settled or not _exists(directory):
            self._forget(job_id)
            del change.entries[job_id]
        elif entry.get("left"):
            remove_secrets(directory)
            self._forget(job_id)
            del change.entries[job_id]
        elif job_id in self.helpers:
            pid, deadline = self.helpers[job_id]
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
        elif "end" in entry:
            self._finish_ended_job(job_id)
        elif self._master_lives(job_id):
            if "cancel" in entry:
                self._end_master(job_id, entry)
        elif _has_end(directory):
            self._end(job_id, entry)
        elif "cancel" in entry:
            killed = "; the master had to be killed" if entry["attempt"] else ""
            self._end(job_id, entry, "CANCELLED", f"cancelled by {entry['cancel']}{killed}")
        else:
            self._start_master(job_id, entry)

    def _master_lives(self, job_id: str) -> bool:
        """Return whether the job's master lives; for a master that is no child of this process the lock tells."""
        if job_id in self.masters or job_id in self.exit_codes:
            return job_id in self.masters
        lock = lock_job(self._directory(job_id))
        if lock >= 0:
            os.close(lock)
            return False
        self.watches_locks = True
        return True

    def _start_master(self, job_id: str, entry: Entry) -> None:
        """Start the first attempt of a job's master, or the next attempt after the master was killed."""
        directory, code = self._directory(job_id), self.exit_codes.get(job_id)
        began = _exists(os.path.join(directory, "events.jsonl"))
        if code is not None and code >= 0 and code != 128 + signal.SIGTERM:
            ended = f"ended with status {code}" if began else "ended before it began"
            return self._end(job_id, entry, "FAILED", f"the master {ended}: {_last_line(directory)}")
        if entry["running"]:
            now = time.time()
            entry["killed"] = [at for at in entry["killed"] if now - at < KILLED_WITHIN_S] + [now]
            entry["running"] = False
            _log(f"{job_id}: attempt {entry['attempt']} of the master was killed")
        try:
            record = read_start_record(directory)
        except (FileNotFoundError, PermissionError, ValueError, KeyError, TypeError, AttributeError) as error:
            return self._end(job_id, entry, "FAILED", f"the master cannot be started: {error}")
        if len(entry["killed"]) >= record["attempts"]:
            pid = master_pid(directory)
            return self._end(job_id, entry, "FAILED", f"the master was killed (pid {pid}); nothing else is known")
        self.state.check_room()
        # A master that has written no event has started nothing: the next one is the first.
        attempt = max(entry["attempt"], 1) + 1 if began else 1
        pid = start_master(directory, record, attempt)
        if pid:
            self.masters[job_id] = pid
            entry["attempt"], entry["running"] = attempt, True
        return None

    def _end(self, job_id: str, entry: Entry, state: str = "", diagnostics: str = "") -> None:
        """Record how the job ended (without a `state` its log says so), and have the job settled."""
        decide_end(entry, state, diagnostics)
        self._finish_ended_job(job_id)

    def _end_master(self, job_id: str, entry: Entry) -> None:
        """Ask the master to cancel its job; kill the master if it has not when the time of its programs to stop is
        over."""
        pid, now = self.masters.get(job_id) or master_pid(self._directory(job_id)), time.monotonic()
        if not pid:
            return
        try:
            if job_id not in self.term_sent:
                self.term_sent[job_id] = now
                os.kill(pid, signal.SIGTERM)
            elif now - self.term_sent[job_id] >= entry.get("stop_s", 0.0) + TERM_S:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _finish_ended_job(self, job_id: str) -> None:
        """Start the helper that writes the job's end and removes the files that the job has left."""
        count, not_before = self.failed_tries.get(job_id, (0, 0.0))
        if len(self.helpers) >= MAX_HELPERS or count >= SETTLE_TRIES or time.monotonic() < not_before:
            return
        directory = self._directory(job_id)
        if job_id not in self.start_records:
            try:
                self.start_records[job_id] = read_start_record(directory)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                self.start_records[job_id] = {"command": [sys.executable], "environment": os.environb}
        remove_secrets(directory)
        record = self.start_records[job_id]
        command = [record["command"][0], "-m", "howdah.engines.local.finish_ended_job", self.state.directory, job_id]
        log = os.path.join(directory, "master.log")
        output = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        streams = [output, (os.POSIX_SPAWN_DUP2, 1, 2)]
        try:
            pid = os.posix_spawn(command[0], command, record["environment"], file_actions=streams)
        except OSError as error:
            self.failed_tries[job_id] = (count + 1, time.monotonic() + SETTLE_AGAIN_S * (count + 1))
            _log(f"{job_id}: the helper that settles it cannot be started: {error}")
            return
        self.helpers[job_id] = (pid, time.monotonic() + SETTLE_S)

    def _forget(self, job_id: str) -> None:
        for kept in (self.failed_tries, self.start_records, self.problems, self.term_sent):
            kept.pop(job_id, None)

    def _directory(self, job_id: str) -> str:
        return os.path.join(self.state.jobs_directory, job_id)


def _exists(path: str) -> bool:
    """Return whether the file or directory exists; an error of another kind does not mean that it does not."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def _has_end(directory: str) -> bool:
    """Return whether the job's event log says how the job ended."""
    try:
        with open(os.path.join(directory, "events.jsonl"), "rb") as log:
            return any(line.startswith(b'{"kind":"JobFinished"') for line in log)
    except FileNotFoundError:
        return False


def _last_line(directory: str) -> str:
    """Return the last line of the master's own output."""
    try:
        with open(os.path.join(directory, "master.log"), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_LINE_BYTES))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
    except FileNotFoundError:
        lines = []
    return lines[-1] if lines else "no output"


def _open_fifo(path: str) -> int:
    """Open the FIFO for reading; it is made if necessary."""
    try:
        if not stat.S_ISFIFO(os.lstat(path).st_mode):  # copied together with the directory
            unlink(path)
            os.mkfifo(path, 0o600)
    except FileNotFoundError:
        os.mkfifo(path, 0o600)
    fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # with a writer in this process, reading never reports the end
    return fifo


def _log(text: str) -> None:
    """Write a line to the supervisor's log; on a full disk it is left out."""
    line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n"
    with contextlib.suppress(OSError):
        os.write(2, line.encode("utf-8", "backslashreplace"))  # a buffer would keep what finds no room, and fail later
