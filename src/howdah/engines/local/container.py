"""One granted container of this machine, from its launch until all of its processes are gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from howdah.engines import Launch
from howdah.engines.exit_status import exit_of_status
from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.processes import MARK, alive, kill_marked, start_of
from howdah.localfiles.container_tools import remove_containers
from howdah.spec import Container, Exit
from howdah.spec.message import message
from howdah.wire import program_protocol
from howdah.wire.credentials import Credentials

KILL_AFTER_S = 1.0
"""Seconds from TERM to KILL of an executor, which ends its processes within 200 ms of TERM."""
FINISH_TRIES, FINISH_RETRY_S = 25, 0.2
UNKNOWN = 1 << 16
# Variables that a container does not inherit from the submitter.
_NOT_INHERITED = ("HOWDAH_CREDENTIALS", "HOWDAH_MASTER", "HOWDAH_MASTER_ATTEMPT", "HOWDAH_MASTER_LOCK", MARK)


class LocalContainer:
    """Runs the executor of one container. `ended(container, exit)` is called once, from the event loop, after all of
    its processes have ended."""

    def __init__(
        self, container: Container, gpus: tuple[str, ...] | None, ended: Callable[[LocalContainer, Exit], None]
    ) -> None:
        self.container, self.gpus, self._on_ended = container, gpus, ended
        self.group: MemoryGroup | None = None
        self.released = False
        self.has_image = False
        """Whether the executor runs its program in an image."""
        self._process: subprocess.Popen[bytes] | None = None
        self.pid = self.start_time = 0
        self._status_seen: int | None = None
        self._pidfd = -1
        self._directory = Path()

    @property
    def running(self) -> bool:
        """Return whether an executor was started and has not been seen to end."""
        return self.pid != 0 and self._status_seen is None

    def adopt(self, pid: int, start_time: int, directory: Path) -> None:
        """Watch the executor that an earlier master started in `directory`."""
        self.pid, self.start_time, self._directory = pid, start_time, directory
        self._watch(pid)

    def start(self, launch: Launch, directory: Path, host: str) -> None:
        """Start the executor in `directory`, whose `work` is prepared.

        Raises:
            OSError: it cannot be started.
        """
        self._directory = directory
        credentials = _file_in_memory(Credentials(secrets=dict(launch.secrets)).to_bytes())
        variables = {
            **{name: value for name, value in os.environ.items() if name not in _NOT_INHERITED},
            "HOWDAH_HOST": host,
            "HOWDAH_CREDENTIALS": f"/proc/self/fd/{credentials}",
            "HOWDAH_LOG_DIR": str(directory),
            "HOWDAH_TASKS_DIR": str(directory.parent.parent),
            "HOWDAH_WORK_DIR": str(directory / "work"),
            "HOWDAH_ORPHAN_KILLER": "0",
            MARK: self.container.id,
            **({} if self.gpus is None else {"CUDA_VISIBLE_DEVICES": ",".join(self.gpus)}),
            **launch.environment,
        }
        try:
            with (directory / "executor.log").open("ab") as log:
                # The executor stays in the master's session, which has no terminal, so keys typed at the submitter's
                # terminal do not reach it. It gets no session of its own, because the kernel schedules the processes
                # of one session as one group.
                self._process = subprocess.Popen(
                    self.group.entering(launch.command) if self.group is not None else launch.command,
                    cwd=directory,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(credentials,),
                )
        finally:
            os.close(credentials)
        try:
            self.pid, self.start_time = self._process.pid, start_of(self._process.pid)
        except OSError:
            self._process.kill()
            raise
        self._watch(self.pid)

    def release(self) -> None:
        """Ask the executor to end all its processes, which takes at most 200 ms; KILL the executor if it does not."""
        self.released = True
        if self.running:
            self._signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(KILL_AFTER_S, self.kill)

    def kill(self) -> None:
        """KILL the executor now."""
        if self.running:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
        elif alive(self.pid, self.start_time):
            os.kill(self.pid, number)

    def _watch(self, pid: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError:  # Linux before 5.3
            loop.call_later(0.05, self._check_ended)
        else:
            loop.add_reader(self._pidfd, self._check_ended)

    def _check_ended(self) -> None:
        status = self._status()
        if status is None:
            if self._pidfd < 0:
                asyncio.get_running_loop().call_later(0.05, self._check_ended)
            return
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._status_seen = status
        self._finish(status)

    def _finish(self, status: int, tries: int = 1) -> None:
        try:
            exit = self._exit(status)
            self._clean_up(status)
        except OSError as error:  # this process has too many open files, for instance
            if tries < FINISH_TRIES:
                asyncio.get_running_loop().call_later(FINISH_RETRY_S, self._finish, status, tries + 1)
                return
            template = "its executor ended with {status}; why could not be found out: {reason}"
            exit = Exit("exit", status, detail=message(template, status=status, reason=error))
        self._on_ended(self, exit)

    def _status(self) -> int | None:
        """Return the executor's exit status; None while it runs. For an adopted executor it is UNKNOWN: the kernel
        reports a status to the parent only."""
        if self._process is not None:
            return self._process.poll()
        if self._pidfd >= 0:  # it only shows whether the process has ended
            return UNKNOWN
        try:
            return None if alive(self.pid, self.start_time) else UNKNOWN
        except OSError:
            return None

    def _exit(self, status: int) -> Exit:
        if self.released:
            return Exit("stopped", detail=message("its container was given back"))
        memory = self.group.oom_kill_text() if self.group is not None else ""
        if memory and status != 0:
            return Exit("memory", signal=signal.SIGKILL, detail=memory)
        if status == UNKNOWN:
            return Exit("signal", detail=message("its executor (pid {pid}) is gone", pid=self.pid))
        return exit_of_status(status, self._last_log_line() if status > 0 else "")

    def _last_log_line(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self._directory / "executor.log").read_text(encoding="utf-8", errors="replace").splitlines()
            return lines[-1] if lines else message("no output")
        return message("it left no log")

    def _clean_up(self, status: int) -> None:
        if self.group is not None:
            self.group.kill()
            self.group.remove()
        elif status != 0:
            # An executor that ends normally has left no processes; one that was killed may have.
            kill_marked(self.container.id)
        if status != 0 and self.has_image:
            threading.Thread(target=remove_containers, args=(self.container.id,), daemon=True).start()
        if status != 0:
            remove_program_key(self._directory)


def _file_in_memory(content: bytes) -> int:
    """Return an open file that is on no disk: it disappears when the last process that has it open ends."""
    file = os.memfd_create("howdah-credentials")
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(content)
    return file


def kill_leftovers(name: str, groups: Iterable[str], whole: bool = False, has_image: bool = False) -> None:
    """KILL all processes of a job's containers and remove their control groups, whose directories `groups` are.

    `name` is the job's id, or with `whole` that of one container. With `has_image` programs may have run in images.
    """
    for directory in filter(None, groups):
        group = MemoryGroup.at(directory)
        group.kill()
        group.remove()
    kill_marked(f"{name}\0" if whole else f"{name}.")
    if has_image:
        remove_containers(name if whole else f"{name}.")


def remove_program_key(directory: Path) -> None:
    """Remove the key of the programs that ran in a container's directory; an executor that was killed could not."""
    shutil.rmtree(directory / program_protocol.DIRECTORY, ignore_errors=True)
