"""The user's program: started in a process group of its own, read, measured, stopped, and cleaned up after.

It has ended only when nothing that it started is left and both its streams have been read to their end.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import time
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import READ, EventLoop
from howdah.executor.gpu.monitor import GpuMonitor
from howdah.executor.io.log_file import StreamLog
from howdah.executor.io.log_tail import LogTail
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.process import network_usage, process_tree
from howdah.executor.process.announced_values import AnnouncedValues
from howdah.executor.process.oom_detection import OomDetector
from howdah.executor.process.read_throttle import ReadThrottle
from howdah.executor.process.usage import Meter
from howdah.spec.task import Exit
from howdah.wire.messages import Usage

_F_SETPIPE_SZ, _F_GETPIPE_SZ = 1031, 1032
_PIPE, _PIECE = 1 << 20, 1 << 16  # what is larger than a piece the C library would map anew for each read
_LEAVE_S = 0.1  # Helpers such as multiprocessing's resource tracker go by themselves when the program does.
_SWEEP_S = 0.02
_SWEEP_LIMIT_S = 10.0
_DRAIN_LIMIT_S = 2.0
_PORT_WINDOW_S = 600.0  # LightGBM's programs read their data before they listen
# The last two are LightGBM's words and gRPC's.
_PORT_TAKEN = re.compile(
    rb"(?i)address already in use|eaddrinuse|errno:? 98\b|binding port \d+ failed|no address added out of total"
)


class Program:
    """One run of a command. `ended(exit)` is called once, from the loop. `note` writes a line for operators, `asked` is
    called with a number when the program asks for so many copies of its outputs."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: process_tree.Reaper,
        logs: Mapping[str, StreamLog],
        ended: Callable[[Exit], None],
        note: Callable[[str], None],
    ) -> None:
        self.loop, self.reaper, self.logs, self.ended, self.note = loop, reaper, logs, ended, note
        self.tails = {name: LogTail() for name in logs}
        self._pace, self._taken = ReadThrottle(_PIPE), 0
        self.pid = 0
        self.meter: Optional[Meter] = None
        self.yields = AnnouncedValues({})
        self.asked: Callable[[int], None] = lambda _: None
        self.here: Optional[ProgramApiDir] = None
        self.gpus: Optional[GpuMonitor] = None
        self._first: Optional[Tuple[float, float]] = None
        self._memory = OomDetector()
        self._readers: Dict[str, int] = {}
        self._started = 0.0
        self._status: Optional[int] = None
        self._strays: Dict[int, str] = {}
        self._largest_kib, self._cpu_s = 0, 0.0
        self._looks = 0
        self._swept = self._finished = False

    def start(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        stdin: Optional[int] = None,
        stdout: Optional[int] = None,
    ) -> None:
        """Run it, reading nothing and writing to the logs but for the streams that are given; those stay open here.

        Raises:
            OSError: it cannot be executed; `ended` is not called then.
        """
        opened: List[int] = []
        try:
            if stdin is None:
                stdin = os.open(os.devnull, os.O_RDONLY)
                opened.append(stdin)
            outputs = {} if stdout is None else {"stdout": stdout}
            for name in self.logs:
                if name not in outputs:
                    self._readers[name], outputs[name] = wide_pipe()
                    os.set_blocking(self._readers[name], False)
                    opened.append(outputs[name])
            streams = (stdin, outputs["stdout"], outputs["stderr"])
            self.pid = self.reaper.spawn(argv, environment, streams, self._child_ended, directory)
        except OSError:
            self._close_readers()
            raise
        finally:
            for file in opened:
                os.close(file)
        self._started = time.monotonic()
        self.meter = Meter(self.pid, self.reaper.program_processes, network_usage.is_own(environment))
        self.gpus = GpuMonitor(self.loop, self.reaper, environment, self.note)
        room = [fcntl.fcntl(reader, _F_GETPIPE_SZ) for reader in self._readers.values()]
        self._pace = ReadThrottle(min(room, default=_PIPE))
        self._listen()
        self.loop.call_later(0.2, self._sample)

    def stop(self, grace_s: float) -> None:
        """TERM to its group now, KILL after `grace_s` seconds."""
        if self._status is None:
            process_tree.kill_group(self.pid, signal.SIGTERM)
            self.loop.call_later(grace_s, self._kill)

    def drain(self) -> None:
        """Take what is left in the pipes, now that nobody writes any more."""
        for name in list(self._readers):
            while name in self._readers and self._pump(name):
                pass

    @property
    def usage(self) -> Usage:
        """As it was sampled last."""
        usage = self.meter.usage if self.meter is not None else Usage()
        usage = replace(usage, log_bytes=sum(log.size for log in self.logs.values()))
        if self._first is not None:
            usage = replace(usage, first_at=self._first[0], first_progress=self._first[1])
        return usage if self.gpus is None else replace(usage, gpus=self.gpus.gpus, gpu_mean=self.gpus.mean)

    @property
    def running(self) -> bool:
        """Its own process has not ended."""
        return self._status is None

    @property
    def progress(self) -> Optional[float]:
        """What it reported last, on either stream or by `howdah.program`; None when nothing."""
        told = [tail.progress for tail in self.tails.values()] + [self.here.progress if self.here is not None else None]
        return max((one for one in told if one is not None), default=None)

    def _kill(self) -> None:
        if self._status is None:
            process_tree.kill_group(self.pid, signal.SIGKILL)

    def _sample(self) -> None:
        if self._status is None and self.meter is not None:
            progress = self.progress
            if progress is not None and self._first is None:
                self._first = (round(time.time(), 1), progress)
            self.meter.sample(progress)
            self.loop.call_later(self.meter.period, self._sample)

    def _listen(self) -> None:
        for reader in self._readers.values():
            self.loop.add_fd(reader, READ, self._readable)

    def _readable(self, _: int) -> None:
        """Both streams are read, whichever has something: their order is known as exactly as they are read often."""
        sizes = [self._pump(name) for name in list(self._readers) if name in self._readers]
        self._taken += sum(sizes)
        if not self._taken or _PIECE in sizes or self._swept:  # there may be more
            return
        rest = self._pace.pause_s(time.monotonic(), self._taken)
        self._taken = 0
        if rest:
            for reader in self._readers.values():
                self.loop.remove_fd(reader)
            self.loop.call_later(rest, self._listen)

    def _pump(self, name: str) -> int:
        """Take one piece; its size."""
        reader = self._readers[name]
        try:
            data = os.read(reader, _PIECE)
        except BlockingIOError:
            return 0
        if not data:
            self.loop.remove_fd(reader)
            os.close(self._readers.pop(name))
            self._finish_if_drained()
            return 0
        tail = self.tails[name]
        asked = tail.saves
        tail.feed(data)
        if tail.saves > asked:
            self.asked(tail.saves - asked)
        if name == "stdout":
            self.yields.feed(data)
        log = self.logs[name]
        whole = not log.lost
        log.write(data)
        if whole and log.lost:
            self.note(f"{name} is not kept for now: {log.problem}")
        return len(data)

    def _child_ended(self, status: int, usage: Any) -> None:
        self._status, self._largest_kib = status, usage.ru_maxrss
        self._cpu_s = usage.ru_utime + usage.ru_stime
        if self.gpus is not None:
            self.gpus.close()
        self._sweep(time.monotonic())

    def _sweep(self, since: float) -> None:
        """Until nothing is left below us: what does not leave by itself at once is killed."""
        waited = time.monotonic() - since
        if not self._alone() and waited < _SWEEP_LIMIT_S:
            if waited >= _LEAVE_S:
                for pid in self.reaper.program_processes():
                    self._strays.setdefault(pid, process_tree.name(pid))
                    process_tree.kill(pid, signal.SIGKILL)
            self.loop.call_later(_SWEEP_S, lambda: self._sweep(since))
            return
        if self._strays:
            names = ", ".join(f"{name} (pid {pid})" for pid, name in list(self._strays.items())[:10])
            self.note(f"the program left {len(self._strays)} processes, which were killed: {names}")
        self._swept = True
        self._listen()  # though they may rest: nothing more is to come
        self.loop.call_later(_DRAIN_LIMIT_S, self._finish)
        self._finish_if_drained()

    def _alone(self) -> bool:
        """The kernel's word that nothing is left, or, while helpers live, twice that of /proc, which may miss one."""
        if self.reaper.reap():
            return True
        self._looks = self._looks + 1 if self.reaper.has_helpers and not self.reaper.program_processes() else 0
        return self._looks > 1

    def _finish_if_drained(self) -> None:
        if self._swept and not self._readers:
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._close_readers()
            assert self.meter is not None
            self.meter.note_end(self._largest_kib, self.progress, self._cpu_s)
            self.yields.end()
            self.ended(self._exit())

    def _close_readers(self) -> None:
        for reader in self._readers.values():
            self.loop.remove_fd(reader)
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
        return early and any(tail.contains(_PORT_TAKEN) for tail in self.tails.values())


def wide_pipe() -> Sequence[int]:
    """A pipe that holds as much as an unprivileged process may ask for, so that its writer seldom waits."""
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(reader, _F_SETPIPE_SZ, _PIPE)
    except OSError:
        pass
    return reader, writer


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"
