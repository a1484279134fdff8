"""Keeps the jobs of one user that wait or run on this machine, in files that every process of that user may change.

    <home>/local/<host name>/
        lock              locked (flock) during every change, for milliseconds
        queue/            a file for each waiting job, `<ticket>-<job id>`; tickets count submissions
        ledger.json       the jobs that have left the queue, and what each of them holds
        submitting/       directories of jobs whose submission is not complete
        supervisor.lock   locked as long as the supervisor lives
        wake              the FIFO that the supervisor reads

A job is in the queue, or in the ledger, from its submission until its end is in its event log and its secrets are
removed. Readers take no lock: they read the queue first, then the ledger, then the job's log. A job moves in this
order, so readers miss no job.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from howdah.supervisor.held_interrupts import HeldInterrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    Entry = dict[str, Any]
    Entries = dict[str, Entry]

    class Machine(Protocol):
        """The resources that a machine offers."""

        @property
        def memory_mib(self) -> int:
            """Return the memory in MiB."""

        @property
        def vcores(self) -> int:
            """Return the number of virtual cores."""

        @property
        def gpus(self) -> Sequence[str]:
            """Return the names of the GPU devices."""


SUBMITTED = "submitted.json"
"""The file of a job's directory with the time and the machine of its submission."""
MEMORY, VCORES, GPUS = range(3)
"""Indices of an amount of resources: (MiB of memory, virtual cores, number of GPUs)."""


_MASTERS_FILES_BYTES = 64 << 10
"""The bytes that a master writes at its start, and some more: its address, its first events, its own messages."""


class StateFileDamaged(ValueError):
    """A file of the queue or the ledger was changed by something else than howdah."""


class MachineResources:
    """The machine's resources as the submitter of a waiting job saw them."""

    def __init__(self, memory_mib: int, vcores: int, gpus: Sequence[str]) -> None:
        self.memory_mib, self.vcores, self.gpus = memory_mib, vcores, gpus


class WaitingJob:
    """A job in the queue: its number in the order of submission, and its id."""

    def __init__(self, ticket: int, job_id: str) -> None:
        self.ticket, self.job_id = ticket, job_id

    @property
    def file_name(self) -> str:
        """Return the name of the job's file in the queue; names sort as tickets do."""
        return f"{self.ticket:012d}-{self.job_id}"


class MachineState:
    """The files below `directory`. Reading takes no lock; `change` does."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.queue_directory = os.path.join(directory, "queue")
        self.submitting_directory = os.path.join(directory, "submitting")
        self.lock_file = os.path.join(directory, "lock")
        self.ledger_file = os.path.join(directory, "ledger.json")
        self.supervisor_lock = os.path.join(directory, "supervisor.lock")
        self.wake_fifo = os.path.join(directory, "wake")

    @classmethod
    def for_home(cls, home: str, host: str = "") -> MachineState:
        """Return the state of the jobs below `home` that run on `host`, which is this machine by default."""
        return cls(os.path.join(home, "local", host or os.uname().nodename))

    @property
    def jobs_directory(self) -> str:
        """Return the directory that holds one directory for each job."""
        return os.path.join(os.path.dirname(os.path.dirname(self.directory)), "jobs")

    def check_owner(self) -> None:
        """Check that no other user can put jobs here, because this user's processes run what the files say.

        Raises:
            PermissionError: another user owns one of the directories.
        """
        of_host = os.path.dirname(self.directory)
        for path in (os.path.dirname(of_host), self.jobs_directory, of_host, self.directory, self.queue_directory):
            check_owner(path)

    def make(self) -> None:
        """Make the directories, which only their owner may enter.

        Raises:
            PermissionError: another user owns one of them.
        """
        self.check_owner()
        if not os.path.isdir(self.queue_directory):
            os.makedirs(os.path.dirname(os.path.dirname(self.directory)), mode=0o700, exist_ok=True)
            for directory in (os.path.dirname(self.directory), self.directory, self.queue_directory):
                try:
                    os.mkdir(directory, 0o700)
                except FileExistsError:
                    continue

    def change(self) -> StateChange:
        """Lock the state. Changes of `entries` are written when the `with` block ends without an error."""
        return StateChange(self)

    def check_room(self) -> None:
        """Check that there is room for the ledger, and for the first files of a master.

        Raises:
            OSError: there is none, or nothing can be written here at all.
        """
        try:
            size = os.stat(self.ledger_file).st_size
        except FileNotFoundError:
            size = 0
        trial = os.path.join(self.directory, f".room-{os.uname().nodename}-{os.getpid()}")
        try:
            write_whole(trial, bytes(size + _MASTERS_FILES_BYTES))
        finally:
            unlink(trial)

    def entries(self) -> Entries:
        """Read the ledger's entry of each job that has left the queue.

        Raises:
            StateFileDamaged: the file was changed by something else.
        """
        try:
            with open(self.ledger_file, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return {}
        try:
            found = json.loads(text or b"{}")
            if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
                raise StateFileDamaged("it is not an object of objects")
        except ValueError as error:
            hint = "when none of your jobs runs on this machine, remove it"
            raise StateFileDamaged(f"{self.ledger_file} is damaged ({error}); {hint}") from error
        return found

    def waiting(self) -> list[WaitingJob]:
        """List the waiting jobs in their order."""
        try:
            with os.scandir(self.queue_directory) as found:
                names = sorted(entry.name for entry in found if entry.is_file(follow_symlinks=False))
        except FileNotFoundError:
            return []
        parts = (name.partition("-") for name in names)
        return [WaitingJob(int(ticket), job_id) for ticket, _, job_id in parts if ticket.isdigit() and job_id]

    def demand(self, job: WaitingJob) -> tuple[Sequence[int], MachineResources]:
        """Read the resources that a waiting job asks for first, and the machine as its submitter saw it.

        Raises:
            StateFileDamaged: the file was changed by something else.
            FileNotFoundError: the job has left the queue.
        """
        path = os.path.join(self.queue_directory, job.file_name)
        with open(path, "rb") as file:
            text = file.read()
        try:
            record = json.loads(text)
            memory_mib, vcores, gpus = record["machine"]
            memory, cores, devices = record["wants"]
            return (int(memory), int(cores), int(devices)), MachineResources(int(memory_mib), int(vcores), list(gpus))
        except (KeyError, TypeError, ValueError) as error:
            raise StateFileDamaged(f"{path} is damaged: {error!r}") from error


class StateChange:
    """The locked state, whose `entries` of the ledger may be changed. While it is locked, Ctrl-C is held back."""

    def __init__(self, state: MachineState) -> None:
        self.state = state
        self.entries: Entries = {}
        self._lock, self._before = -1, "{}"
        self._leaving: list[WaitingJob] = []
        self._interrupts = HeldInterrupts()

    def __enter__(self) -> StateChange:
        self.state.make()
        self._interrupts.begin()
        try:
            self._lock = os.open(self.state.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
            self._interrupts.waiting = True
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._interrupts.waiting = False
            self.entries = self.state.entries()
            self._before = json.dumps(self.entries)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, error: object, *_: object) -> None:
        try:
            if error is None:
                self._write()
        finally:
            self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)
        self._interrupts.end()

    def _write(self) -> None:
        after = json.dumps(self.entries)
        if after != self._before:
            write_whole(self.state.ledger_file, after.encode())
        for job in self._leaving:  # after the ledger was written: a job must always be in one of the two
            try:
                self.unlink(job)
            except OSError:  # it stays, and the supervisor ignores a job there that has ended
                continue

    def unlink(self, job: WaitingJob) -> None:
        """Take a job out of the queue at once."""
        unlink(os.path.join(self.state.queue_directory, job.file_name))

    def enqueue(self, job_id: str, wants: Sequence[int], machine: Machine) -> WaitingJob:
        """Add a job at the end of the queue."""
        record = {"wants": list(wants), "machine": [machine.memory_mib, machine.vcores, list(machine.gpus)]}
        job = WaitingJob(self.next_ticket(), job_id)
        write_whole(os.path.join(self.state.queue_directory, job.file_name), json.dumps(record).encode())
        return job

    def next_ticket(self) -> int:
        """Return a ticket behind all others."""
        tickets = [job.ticket for job in self.state.waiting()]
        return 1 + max([*tickets, *(entry["ticket"] for entry in self.entries.values())], default=0)

    def find(self, job_id: str) -> WaitingJob | None:
        """Return the job, if it waits."""
        return next((job for job in self.state.waiting() if job.job_id == job_id), None)

    def admit(self, job: WaitingJob, wants: Sequence[int] | None = None) -> Entry:
        """Move a job from the queue to the ledger, and set `wants` aside for it until its master reserves resources."""
        entry = self.entries.setdefault(job.job_id, new_entry(job.ticket))
        entry["promised"] = None if wants is None else list(wants)
        self.remove(job)
        return entry

    def remove(self, job: WaitingJob) -> None:
        """Remove a job from the queue once all other changes are written."""
        self._leaving.append(job)


def check_owner(path: str) -> None:
    """Check that a file or directory, if it exists, is this user's own; if it is a link, the link must be, too.

    Raises:
        PermissionError: it is not.
    """
    try:
        owners = {os.lstat(path).st_uid, os.stat(path).st_uid}
    except FileNotFoundError:
        return
    for owner in owners - {os.geteuid()}:
        hint = "choose a HOWDAH_HOME of your own"
        raise PermissionError(f"{path} belongs to user {owner}, and you are user {os.geteuid()}: {hint}")


def new_entry(ticket: int) -> Entry:
    """Return a job's first entry in the ledger.

    `promised` are the resources that were set aside for the job, `waiting` says whether its master waits for
    containers, `held` are its containers. `attempt` numbers its masters, `running` says that a master was started and
    has not been seen to end, `killed` has the times at which a master was killed. Later `cancel` names the user who
    cancelled the job, `end` holds the state and the diagnostics that were decided for it, and `left` says that its
    master has completed it.
    """
    entry: Entry = {"ticket": ticket, "promised": None, "waiting": False, "held": {}}
    return {**entry, "attempt": 0, "running": False, "killed": []}


def decide_end(entry: Entry, state: str, diagnostics: str) -> None:
    """Record how a job has ended ("" if its event log says so); the supervisor then settles the job."""
    entry["end"] = {"state": state, "diagnostics": diagnostics, "time": time.time()}
    entry["promised"], entry["waiting"] = None, False


def find_shortage(
    entries: Mapping[str, Entry], wanted: Sequence[int], machine: Machine, with_promised: bool = False
) -> tuple[int, int] | None:
    """Return the scarce resource for `wanted`, and its amount in use; None if there is enough.

    `with_promised` also counts the resources that are set aside for jobs whose masters are starting.
    """
    held = [one for entry in entries.values() for one in entry["held"].values()]
    promised = [entry["promised"] for entry in entries.values() if entry["promised"]] if with_promised else []
    taken = {gpu for one in held for gpu in one["gpus"]}
    used = (
        sum(one["memory_mib"] for one in held) + sum(amount[MEMORY] for amount in promised),
        sum(one["vcores"] for one in held) + sum(amount[VCORES] for amount in promised),
        sum(gpu in taken for gpu in machine.gpus) + sum(amount[GPUS] for amount in promised),
    )
    offered = (machine.memory_mib, machine.vcores, len(machine.gpus))
    for kind in (MEMORY, VCORES, GPUS):
        if used[kind] + wanted[kind] > offered[kind]:
            return kind, used[kind]
    return None


def has_room(entries: Mapping[str, Entry], wanted: Sequence[int], machine: Machine) -> bool:
    """Return whether a waiting job may start: there is room, or no other job uses resources, so that waiting is
    useless."""
    in_use = any(entry["held"] or entry["promised"] for entry in entries.values())
    return not in_use or find_shortage(entries, wanted, machine, with_promised=True) is None


def write_whole(path: str, content: bytes) -> None:
    """Replace a file in one step; only its owner may read it."""
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.tmp")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except OSError as error:
        unlink(temporary)
        raise OSError(error.errno, error.strerror, path) from error
    except BaseException:
        unlink(temporary)
        raise


def unlink(path: str) -> None:
    """Remove a file, if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
