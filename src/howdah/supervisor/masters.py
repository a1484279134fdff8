"""Starts a job's master with the variables and limits of the process that submitted the job.

While it lives, a master holds a lock on `master.lock` in its job's directory, which it got from the supervisor as an
open file. The kernel releases the lock when the process ends: so no process id is needed to find out whether a master
lives, and two masters of a job cannot run.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal

from howdah.supervisor.state import check_owner, unlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LOCK, START = "master.lock", "start.json"
SECRETS = ("key", "credentials", START)
"""Files of a job's directory that hold secrets; they are removed when the job has ended."""
_CANNOT_RUN = 126


def start_record(command: Sequence[str], variables: Mapping[str, str], attempts: int) -> bytes:
    """Return the content of `start.json`, with which a master is started; it is taken from this process, which submits
    the job.

    Its environment is that of this process and `variables`. Bytes are written as Latin-1: the supervisor may have
    another encoding of names.
    """
    mask = os.umask(0o077)
    os.umask(mask)
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    environment = {**os.environb, **{os.fsencode(name): os.fsencode(value) for name, value in variables.items()}}
    record = {
        "command": [os.fsencode(word).decode("latin-1") for word in command],
        "environment": {name.decode("latin-1"): value.decode("latin-1") for name, value in environment.items()},
        "attempts": attempts,
        "umask": mask,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in names},
        "cores": sorted(os.sched_getaffinity(0)),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
    }
    return json.dumps(record).encode()


def read_start_record(job_directory: str) -> dict[str, Any]:
    """Read what `start_record` made; the command and the environment are bytes.

    Raises:
        OSError, ValueError, KeyError, TypeError, AttributeError: the file is absent, damaged, or another user's.
    """
    check_owner(os.path.join(job_directory, START))
    with open(os.path.join(job_directory, START), "rb") as file:
        record: dict[str, Any] = json.load(file)
    for name in ("attempts", "umask", "limits", "cores", "nice"):
        record[name]
    command, environment = record["command"], record["environment"]
    record["command"] = [word.encode("latin-1") for word in command]
    record["environment"] = {name.encode("latin-1"): value.encode("latin-1") for name, value in environment.items()}
    return record


def remove_secrets(job_directory: str) -> None:
    """Remove the files of a job's directory that hold secrets."""
    for name in SECRETS:
        unlink(os.path.join(job_directory, name))


def lock_job(job_directory: str) -> int:
    """Lock a job, and return its open lock file, which the caller closes; -1 if a master holds the lock.

    Raises:
        OSError: the file cannot be opened.
    """
    file = os.open(os.path.join(job_directory, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return -1
    except BaseException:
        os.close(file)
        raise
    return file


def master_pid(job_directory: str) -> int:
    """Return the process id of the master that was started last; 0 if there was none."""
    try:
        with open(os.path.join(job_directory, LOCK), "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return 0
    return int(text) if text.strip().isdigit() else 0


def start_master(job_directory: str, record: Mapping[str, Any], attempt: int) -> int:
    """Start attempt number `attempt` of a job's master; return its process id, 0 if one lives already.

    Raises:
        OSError: there is no room for a process, or the files of the job cannot be opened.
    """
    lock = lock_job(job_directory)
    if lock < 0:
        return 0
    try:
        log = os.open(os.path.join(job_directory, "master.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return _fork(job_directory, record, attempt, lock, log)
        finally:
            os.close(log)
    finally:
        os.close(lock)


def _fork(job_directory: str, record: Mapping[str, Any], attempt: int, lock: int, log: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        _exec_master(job_directory, record, attempt, lock, log)
    except BaseException as error:  # this is the forked child, which must not return
        os.write(log, f"the master could not be started: {error}\n".encode())
    finally:
        os._exit(_CANNOT_RUN)


def _exec_master(job_directory: str, record: Mapping[str, Any], attempt: int, lock: int, log: int) -> None:
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    os.set_inheritable(lock, True)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, stream in enumerate((null, log, log)):
        os.dup2(stream, target)
    # Not in the submitter's directory, whose files could pass for modules.
    os.chdir(job_directory)
    os.umask(record["umask"])
    for name, (soft, hard) in record["limits"].items():
        _limit(getattr(resource, name, None), soft, hard)
    _schedule(record["cores"], record["nice"])
    command = record["command"]
    given = {b"HOWDAH_MASTER_ATTEMPT": str(attempt).encode(), b"HOWDAH_MASTER_LOCK": str(lock).encode()}
    environment = {**record["environment"], **given}
    os.execve(command[0], command, environment)


def _limit(kind: int | None, soft: int, hard: int) -> None:
    """Set a limit to the submitter's value, as far as this process may."""
    if kind is None:
        return
    maximum = resource.getrlimit(kind)[1]
    if maximum != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or hard > maximum):
        hard = maximum
    if hard != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > hard):
        soft = hard
    resource.setrlimit(kind, (soft, hard))


def _schedule(cores: Sequence[int], nice: int) -> None:
    """Run on the submitter's cores and with its priority, as far as this process may."""
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        pass
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        pass
