"""Processes that outlive the master that starts them: the next master finds them, and learns how they end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from howdah.engines.processes import alive, start_of

LOOK_S, STOP_S = 0.2, 2.0
# The kernel gives the status of a process only to its parent. A TERM is for the command, whose status must still be
# written. The trap is set after the command has started: a command forked with the shell's trap would not react to a
# TERM before its program runs. A TERM ends `wait`; bash may have the command's status by then, and returns it when
# `wait` is called again.
_WITH_STATUS = (
    '"$@" & trap : TERM; wait $!; status=$?; while kill -0 $! 2>/dev/null; do wait $!; status=$?; done; '
    "wait $! 2>/dev/null; again=$?; [ $again = 127 ] || status=$again; "
    'echo $status > "$0.new"; mv "$0.new" "$0"; exit $status'
)


@dataclasses.dataclass(eq=False)
class KeptProcess:
    """A shell that waits for a command and records its exit status; both are in a session of their own."""

    pid: int
    """The process id of the shell, which is also the id of its session."""
    start: int
    """When the shell started, which distinguishes it from a later process with the same number."""
    status_file: Path
    """The file with the status once the command has ended."""
    _process: asyncio.subprocess.Process | None = None

    @classmethod
    async def run(cls, command: Sequence[str], environment: Mapping[str, str], output: Path) -> KeptProcess:
        """Start a command. Its output is appended to the file `output`; its status is in a file beside it."""
        status_file = output.with_suffix(".status")
        status_file.unlink(missing_ok=True)
        with output.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", _WITH_STATUS, str(status_file), *command),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return cls(process.pid, start_of(process.pid), status_file, process)

    @classmethod
    def from_json(cls, text: str) -> KeptProcess:
        """Return the process that `to_json` has described."""
        pid, start, path = json.loads(text)
        return cls(pid, start, Path(path))

    def to_json(self) -> str:
        """Return the description of the process for another master."""
        return json.dumps([self.pid, self.start, str(self.status_file)])

    @property
    def lives(self) -> bool:
        """Return whether the process runs."""
        return alive(self.pid, self.start) and (self._process is None or self._process.returncode is None)

    def status(self) -> int | None:
        """Return the command's exit status; None if nobody has recorded it."""
        try:
            return int(self.status_file.read_text())
        except (OSError, ValueError):
            return None

    async def wait(self) -> int | None:
        """Wait for the end; return the status, which is negative if the shell itself was killed."""
        if self._process is not None:
            return await self._process.wait()
        while self.lives:
            await asyncio.sleep(LOOK_S)
        return self.status()

    def signal(self, number: int) -> None:
        """Signal the command and all that it has started in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.lives:
                os.killpg(self.pid, number)

    async def end(self) -> None:
        """End the command, by KILL after a while, and wait for its end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.signal(number)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.wait(), STOP_S)
