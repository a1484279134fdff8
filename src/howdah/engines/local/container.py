"""One granted container of this machine, from its launch to the moment when nothing of it is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from howdah.engines import Launch
from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.local.processes import MARK, kill_marked
from howdah.spec import Container, Exit
from howdah.wire.credentials import Credentials

KILL_AFTER_S = 1.0
# What a container does not inherit from whoever submitted the job.
_NOT_INHERITED = ("HOWDAH_CREDENTIALS", "HOWDAH_MASTER", "CUDA_VISIBLE_DEVICES", MARK)


class LocalContainer:
    """`ended(container, exit)` is called once, from the event loop, after everything in it has gone."""

    def __init__(
        self, container: Container, gpus: tuple[str, ...], ended: Callable[[LocalContainer, Exit], None]
    ) -> None:
        self.container, self.gpus, self._ended = container, gpus, ended
        self.group: MemoryGroup | None = None
        self.released = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._directory = Path()

    @property
    def running(self) -> bool:
        """An executor was started and has not been seen to end."""
        return self._process is not None and self._process.returncode is None

    def start(self, launch: Launch, directory: Path, host: str) -> None:
        """Run the launch in `directory`, whose `work` is prepared.

        Raises:
            OSError: it cannot be started.
        """
        self._directory = directory
        credentials = directory / "credentials"
        write_secret(credentials, Credentials(secrets=dict(launch.secrets)).to_bytes())
        variables = {
            **{name: value for name, value in os.environ.items() if name not in _NOT_INHERITED},
            "HOWDAH_HOST": host,
            "HOWDAH_CREDENTIALS": str(credentials),
            "HOWDAH_LOG_DIR": str(directory),
            "HOWDAH_WORK_DIR": str(directory / "work"),
            "HOWDAH_PARENT": str(os.getpid()),
            MARK: self.container.id,
            **({"CUDA_VISIBLE_DEVICES": ",".join(self.gpus)} if self.gpus else {}),
            **launch.environment,
        }
        with (directory / "executor.log").open("ab") as log:
            # In the master's session, which has no terminal, so that what is typed at the submitter's is not meant for
            # it; and not one of its own, for all tasks of a job are then scheduled as one.
            self._process = subprocess.Popen(
                self.group.entering(launch.command) if self.group is not None else launch.command,
                cwd=directory,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._watch(self._process.pid)

    def release(self) -> None:
        """Ask the executor to end everything, which takes it 200 ms at most; KILL if it does not."""
        self.released = True
        if self._process is not None and self.running:
            self._process.terminate()
            asyncio.get_running_loop().call_later(KILL_AFTER_S, self.kill)

    def kill(self) -> None:
        """Now, and all of it."""
        if self._process is not None and self.running:
            self._process.kill()

    def _watch(self, pid: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError:  # Linux before 5.3
            loop.call_later(0.05, self._look)
        else:
            loop.add_reader(self._pidfd, self._look)

    def _look(self) -> None:
        assert self._process is not None
        status = self._process.poll()
        if status is None:
            if self._pidfd < 0:
                asyncio.get_running_loop().call_later(0.05, self._look)
            return
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
        exit = self._exit(status)
        self._clean_up(status)
        self._ended(self, exit)

    def _exit(self, status: int) -> Exit:
        if self.released:
            return Exit("stopped", detail="its container was given back")
        memory = self.group.verdict() if self.group is not None else ""
        if memory and status != 0:
            return Exit("memory", signal=signal.SIGKILL, detail=memory)
        if status < 0:
            return Exit("signal", signal=-status, detail=f"its executor was killed by signal {-status}")
        if status == 0:
            return Exit("exit", 0)
        return Exit("exit", status, detail=f"its executor ended with {status}: {self._last_words()}")

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self._directory / "executor.log").read_text(encoding="utf-8", errors="replace").splitlines()
            return lines[-1] if lines else "it said nothing"
        return "it left no log"

    def _clean_up(self, status: int) -> None:
        with contextlib.suppress(OSError):
            (self._directory / "credentials").unlink()
        if self.group is not None:
            self.group.kill()
            self.group.remove()
        elif status != 0:
            # An executor that ends in order has seen to it that nothing is left; one that was killed has not.
            kill_marked(self.container.id)


def write_secret(path: Path, content: bytes) -> None:
    """A file that only its owner may read, from its first byte on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
