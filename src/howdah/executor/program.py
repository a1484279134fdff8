"""The user's program: started in a process group of its own, read, measured, stopped, and cleaned up after.

It has ended only when nothing that it started is left and both its streams have been read to their end.
"""

from __future__ import annotations

import fcntl
import functools
import os
import signal
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from howdah.executor import processes
from howdah.executor.logs import StreamLog
from howdah.executor.loop import READ, Loop
from howdah.executor.memory import MemoryGroup
from howdah.executor.tail import Tail
from howdah.executor.usage import PERIOD_S, Meter
from howdah.spec.world import Exit

_F_SETPIPE_SZ = 1031
_PIECE = 1 << 20
_LEAVE_S = 0.1  # Helpers such as multiprocessing's resource tracker go by themselves when the program does.
_SWEEP_S = 0.02
_SWEEP_LIMIT_S = 10.0
_DRAIN_LIMIT_S = 2.0
_PORT_WINDOW_S = 60.0
_PORT_TAKEN = (b"address already in use", b"eaddrinuse", b"errno 98", b"errno: 98")


class Program:
    """One run of a command. `ended(exit)` is called once, from the loop. `note` writes a line for operators."""

    def __init__(
        self,
        loop: Loop,
        reaper: processes.Reaper,
        logs: Mapping[str, StreamLog],
        ended: Callable[[Exit], None],
        note: Callable[[str], None],
    ) -> None:
        self.loop, self.reaper, self.logs, self.ended, self.note = loop, reaper, logs, ended, note
        self.tails = {name: Tail() for name in logs}
        self.pid = 0
        self.meter: Optional[Meter] = None
        self._memory = MemoryGroup()
        self._readers: Dict[str, int] = {}
        self._started = 0.0
        self._status: Optional[int] = None
        self._strays: Dict[int, str] = {}
        self._largest_kib = 0
        self._swept = self._finished = False

    def start(self, argv: Sequence[str], environment: Mapping[str, str], directory: str) -> None:
        """Run it.

        Raises:
            OSError: it cannot be executed; `ended` is not called then.
        """
        writers: List[int] = []
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            for name in self.logs:
                self._readers[name], writer = _wide_pipe()
                writers.append(writer)
            streams = (null, writers[0], writers[1])
            self.pid = self.reaper.spawn(argv, environment, streams, self._child_ended, directory)
        except OSError:
            self._close_readers()
            raise
        finally:
            for file in (null, *writers):
                os.close(file)
        self._started = time.monotonic()
        self.meter = Meter(self.pid)
        for name, reader in self._readers.items():
            self.loop.watch(reader, READ, functools.partial(self._readable, name))
        self.loop.later(0.2, self._sample)

    def stop(self, grace: float) -> None:
        """TERM to its group now, KILL after `grace` seconds."""
        if self._status is None:
            processes.kill_group(self.pid, signal.SIGTERM)
            self.loop.later(grace, self._kill)

    def drain(self) -> None:
        """Take what is left in the pipes, now that nobody writes any more."""
        for name in list(self._readers):
            while name in self._readers and self._pump(name):
                pass

    @property
    def progress(self) -> Optional[float]:
        """What it reported last, on either stream; None when nothing."""
        told = [tail.progress for tail in self.tails.values() if tail.progress is not None]
        return max(told) if told else None

    def _kill(self) -> None:
        if self._status is None:
            processes.kill_group(self.pid, signal.SIGKILL)

    def _sample(self) -> None:
        if self._status is None and self.meter is not None:
            self.meter.sample(self.progress)
            self.loop.later(PERIOD_S, self._sample)

    def _readable(self, name: str, _: int) -> None:
        self._pump(name)

    def _pump(self, name: str) -> bool:
        """Take one piece; whether there was something."""
        reader = self._readers[name]
        try:
            data = os.read(reader, _PIECE)
        except BlockingIOError:
            return False
        if not data:
            self.loop.forget(reader)
            os.close(self._readers.pop(name))
            self._finish_if_drained()
            return False
        self.tails[name].feed(data)
        try:
            self.logs[name].write(data)
        except OSError as error:
            self.note(f"{name} is no longer kept: {error}")
            self.logs[name].give_up()
        return True

    def _child_ended(self, status: int, usage: Any) -> None:
        self._status, self._largest_kib = status, usage.ru_maxrss
        self._sweep(time.monotonic())

    def _sweep(self, since: float) -> None:
        """Until nothing is left below us: what does not leave by itself at once is killed."""
        waited = time.monotonic() - since
        if not self.reaper.reap() and waited < _SWEEP_LIMIT_S:
            if waited >= _LEAVE_S:
                for pid in processes.descendants():
                    self._strays.setdefault(pid, processes.name(pid))
                    processes.kill(pid, signal.SIGKILL)
            self.loop.later(_SWEEP_S, lambda: self._sweep(since))
            return
        if self._strays:
            names = ", ".join(f"{name} (pid {pid})" for pid, name in list(self._strays.items())[:10])
            self.note(f"the program left {len(self._strays)} processes, which were killed: {names}")
        self._largest_kib = 0
        self._swept = True
        self.loop.later(_DRAIN_LIMIT_S, self._finish)
        self._finish_if_drained()

    def _finish_if_drained(self) -> None:
        if self._swept and not self._readers:
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._close_readers()
            assert self.meter is not None
            self.meter.note_end(self._largest_kib, self.progress)
            self.ended(self._exit())

    def _close_readers(self) -> None:
        for reader in self._readers.values():
            self.loop.forget(reader)
            os.close(reader)
        self._readers = {}

    def _exit(self) -> Exit:
        assert self._status is not None
        number = os.WTERMSIG(self._status) if os.WIFSIGNALED(self._status) else None
        code = None if number is not None else os.WEXITSTATUS(self._status)
        cause, detail = ("exit", "") if number is None else ("signal", f"killed by {_signal_name(number)}")
        if code != 0:
            memory = self._memory.verdict(killed=signal.SIGKILL in (number, (code or 0) - 128))
            if memory is not None:
                cause, detail = "memory", memory
            elif self._port_was_taken():
                cause, detail = "port", f"exit code {code}: a port it wanted to listen on was taken meanwhile"
        return Exit(cause, code, number, detail, self.last_lines())

    def last_lines(self) -> Tuple[str, ...]:
        """Of stderr, where programs say what went wrong; of stdout when that is empty."""
        return self.tails["stderr"].lines() or self.tails["stdout"].lines()

    def _port_was_taken(self) -> bool:
        early = time.monotonic() - self._started < _PORT_WINDOW_S
        return early and any(tail.contains(*_PORT_TAKEN) for tail in self.tails.values())


def _wide_pipe() -> Sequence[int]:
    """A pipe that holds as much as an unprivileged process may ask for, so that a talkative program seldom waits."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        fcntl.fcntl(reader, _F_SETPIPE_SZ, _PIECE)
    except OSError:
        pass
    return reader, writer


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"
