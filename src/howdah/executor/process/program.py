"""`Program` starts the user's program in a process group of its own, reads its output, measures it and stops it.

A program has ended only when nothing that it started is left and both its streams have been read to their end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from howdah.executor import own_log
from howdah.executor.event_loop import READ, EventLoop
from howdah.executor.gpu.monitor import GpuMonitor
from howdah.executor.io.log_file import StreamLog
from howdah.executor.io.log_tail import LogTail
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.process import network_usage, process_tree
from howdah.executor.process.announced_values import AnnouncedValues
from howdah.executor.process.exit_explanation import killed_by
from howdah.executor.process.left_processes import left_in_background
from howdah.executor.process.oom_detection import OomDetector
from howdah.executor.process.read_throttle import ReadThrottle
from howdah.executor.process.usage import Meter
from howdah.logs.last_lines import OutputEnd, choose_last_lines, output_end
from howdah.spec.message import message
from howdah.spec.task import Exit
from howdah.spec.usage import Usage

if TYPE_CHECKING:  # most programs run in no image, and their executors need nothing of one
    from howdah.executor.process.image_program import ImageProgram

BY_ENGINE = message("stopped by a signal")
"""Why a program is stopped when the engine takes its container away."""
_F_SETPIPE_SZ, _F_GETPIPE_SZ = 1031, 1032
_PIPE, _PIECE = 1 << 20, 1 << 16  # for each larger read the C library would map memory anew
_LEAVE_S = 0.1  # Processes such as multiprocessing's resource tracker end by themselves soon after the program.
_SCAN_S = 0.02
_SWEEP_S = 0.1
_KILL_LIMIT_S = 10.0
_TERM_GRACE_S = 0.1  # Some engines send KILL 250 ms after TERM.
_TOOL_GRACE_S = 2.0  # The tool removes its container meanwhile; rootless podman takes half as long.
_TOOL_LEAVE_S = 5.0  # meanwhile the tool removes its container; rootless podman takes half of this
_DRAIN_LIMIT_S = 2.0
_PORT_WINDOW_S = 600.0  # LightGBM's programs read their data before they listen
# The last two are LightGBM's words and gRPC's.
_PORT_TAKEN = re.compile(
    rb"(?i)address already in use|eaddrinuse|errno:? 98\b|binding port \d+ failed|no address added out of total"
)


class Program:
    """One run of a command.

    The event loop calls `ended(exit)` once, and `on_snapshot_request(count)` when the program asks for snapshots.
    `yields` are the words by which standard output announces values; `tell_user` writes a line to the executor's log
    and the task's stderr.
    """

    def __init__(
        self,
        loop: EventLoop,
        logs: Mapping[str, StreamLog],
        program_api: ProgramApiDir,
        yields: Mapping[str, str],
        ended: Callable[[Exit], None],
        on_snapshot_request: Callable[[int], None],
        tell_user: Callable[[str], None],
    ) -> None:
        self.loop, self.logs, self.program_api, self.yields = loop, logs, program_api, AnnouncedValues(yields)
        self.ended, self.on_snapshot_request, self.tell_user = ended, on_snapshot_request, tell_user
        self.tails = {name: LogTail() for name in logs}
        self._read_throttle, self._read_bytes = ReadThrottle(_PIPE), 0
        self.pid = 0
        self.meter: Optional[Meter] = None
        self.gpus: Optional[GpuMonitor] = None
        self._first_progress: Optional[Tuple[float, float]] = None
        self._oom = OomDetector()
        self._readers: Dict[str, int] = {}
        self._started = 0.0
        self._end_when_stopped: Optional[OutputEnd] = None
        self._status: Optional[int] = None
        self._killed: Dict[int, str] = {}
        self._terminated: Set[int] = set()
        self._kill_at: Optional[float] = None
        self._grace_s = 0.0
        self._largest_kib, self._cpu_s = 0, 0.0
        self._empty_scans = 0
        self._is_alone = self._finished = False
        self.image: Optional[ImageProgram] = None

    def start(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        stdin: Optional[int] = None,
        stdout: Optional[int] = None,
        image: Optional[ImageProgram] = None,
        grace_s: float = 10.0,
    ) -> None:
        """Start the program. Without `stdin` it reads nothing, without `stdout` it writes to the log; both stay open.

        Processes that the command leaves when it ends have `grace_s` seconds between TERM and KILL. With an `image` the
        tool that runs the program in it is started instead, with the arguments and the environment of `image`.

        Raises:
            OSError: the command cannot be executed; `ended` is not called then.
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
            streams = [stdin, outputs["stdout"], outputs["stderr"]]
            if image is None:
                self.pid = self.loop.reaper.spawn(argv, environment, streams, self._child_ended, directory)
            else:
                opened += image.files
                streams += image.files
                self.pid = self.loop.reaper.spawn(image.argv, image.environment, streams, self._child_ended, "/")
        except OSError:
            self._close_readers()
            raise
        finally:
            for file in opened:
                os.close(file)
        self._started = time.monotonic()
        self.image, self._grace_s = image, grace_s
        if image is not None:
            image.watch(self.loop, self._signal_tool)
        self.meter = Meter(self.pid, self.processes, network_usage.is_own(environment))
        self.gpus = GpuMonitor(self.loop, environment, own_log.log)
        room = [fcntl.fcntl(reader, _F_GETPIPE_SZ) for reader in self._readers.values()]
        self._read_throttle = ReadThrottle(min(room, default=_PIPE))
        self._listen()
        self.loop.call_later(0.2, self._sample)

    def stop(self, grace_s: float, is_told: bool = False) -> None:
        """Send TERM to the program's processes now, unless all of them have got it already (`is_told`), and KILL to all
        that are left after `grace_s` seconds.

        The time is not shortened when the first process, such as a shell, ends. A process outside of the group gets no
        TERM while its parent lives: a launcher passes the signal on, and a second TERM could come while the program
        saves.
        """
        kill_at = time.monotonic() + grace_s
        if self._status is None:
            self._read_what_waits()
        self._end_when_stopped = self.output_end()
        if is_told and (self.image is None or self.image.processes() is None):  # else they are in another container
            self._note_told_processes()
        elif self._kill_at is None and (self._status is None or self.processes()):
            self._terminate_group()
        if self._status is None:
            self.loop.call_later(grace_s, self._kill)
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)

    def _note_told_processes(self) -> None:
        """Note that each process has had its TERM. The processes are listed until no new one appears: a process whose
        parent ends meanwhile may be missed, because it then has another parent."""
        known = -1
        while len(self._terminated) > known:
            known = len(self._terminated)
            self._terminated.update(self.processes())

    def send_signal(self, number: int) -> None:
        """Send a signal to the program's group."""
        if self.image is None or self.image.processes() is None:
            process_tree.kill_group(self.pid, number)
        elif not self.image.send_signal(number) and number in (signal.SIGTERM, signal.SIGKILL):
            self._signal_tool(number)

    def end_now(self) -> None:
        """Send TERM and wait for the end, in a blocking call. The caller kills the processes that are left then."""
        self.send_signal(signal.SIGTERM)
        if not self._wait_for_children(_TERM_GRACE_S) and self.image is not None:
            self.send_signal(signal.SIGKILL)
            if not self._wait_for_children(_TOOL_GRACE_S):
                self.image.remove_later()

    def _wait_for_children(self, limit_s: float) -> bool:
        deadline = time.monotonic() + limit_s
        while not self.loop.reaper.reap():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def processes(self) -> List[int]:
        """List the program's processes."""
        inside = self.image.processes() if self.image is not None else None
        return self.loop.reaper.program_processes() if inside is None else inside

    def drain(self) -> None:
        """Read the rest of the pipes, when no process writes any more."""
        for name in list(self._readers):
            while name in self._readers and self._read_piece(name):
                pass

    @property
    def tracker_runs(self) -> Tuple[str, ...]:
        """Return the addresses of runs of experiment trackers that the program has printed."""
        return tuple(dict.fromkeys(url for tail in self.tails.values() for url in tail.tracker_runs))

    @property
    def usage(self) -> Usage:
        """Return the last sample."""
        usage = self.meter.usage if self.meter is not None else Usage()
        usage = replace(usage, log_bytes=sum(log.size for log in self.logs.values()))
        if self._first_progress is not None:
            usage = replace(usage, first_at=self._first_progress[0], first_progress=self._first_progress[1])
        return usage if self.gpus is None else replace(usage, gpus=self.gpus.gpus, gpu_mean=self.gpus.mean)

    @property
    def running(self) -> bool:
        """Return whether the program's own process has not ended."""
        return self._status is None

    @property
    def progress(self) -> Optional[float]:
        """Return the progress reported on either stream or by `howdah.program`; None when there is none."""
        reported = [self.program_api.progress, *(tail.progress for tail in self.tails.values())]
        return max((progress for progress in reported if progress is not None), default=None)

    def _signal_tool(self, number: int = signal.SIGKILL) -> None:
        if self._status is None and self.image is not None:
            self.image.interrupted = True
            process_tree.kill_group(self.pid, number)

    def _terminate_group(self) -> None:
        """Send TERM to the program's group, except to processes that only read what the others print."""
        pids = self.processes()
        filters = process_tree.filters(pids)
        if self.image is not None:
            self.image.note_stop()
            self._terminate_orphans()
        if not filters:
            self.send_signal(signal.SIGTERM)
            return
        for pid in pids:
            if pid not in filters and process_tree.group(pid) == self._group:
                process_tree.kill(pid, signal.SIGTERM)

    @property
    def _group(self) -> int:
        """Return the process group of the program, or of process 1 of its container, which is the same one."""
        return self.image.pid if self.image is not None and self.image.pid else self.pid

    def _terminate_orphans(self) -> None:
        """Send TERM, once, to each process outside of the group whose parent has ended."""
        inside = self.image is not None and self.image.pid
        for pid in process_tree.children(self._group if inside else os.getpid()):
            is_ours = inside or pid in self.loop.reaper.program_processes()
            if is_ours and pid not in self._terminated and process_tree.group(pid) != self._group:
                self._terminated.add(pid)
                process_tree.kill(pid, signal.SIGTERM)
        if inside and self._status is None:
            self.loop.call_later(_SWEEP_S, self._terminate_orphans)

    def _kill(self) -> None:
        if self._status is None:
            self.send_signal(signal.SIGKILL)

    def _sample(self) -> None:
        if self._status is None and self.meter is not None:
            progress = self.progress
            if progress is not None and self._first_progress is None:
                self._first_progress = (round(time.time(), 1), progress)
            self.meter.sample(progress)
            self.loop.call_later(self.meter.period, self._sample)

    def _listen(self) -> None:
        for reader in self._readers.values():
            self.loop.add_fd(reader, READ, self._on_readable)

    def _on_readable(self, _: int) -> None:
        """Read both streams, whichever is ready: the more often both are read, the better their order is known."""
        sizes = [self._read_piece(name) for name in list(self._readers) if name in self._readers]
        self._read_bytes += sum(sizes)
        if not self._read_bytes or _PIECE in sizes or self._is_alone:  # there may be more
            return
        pause_s = self._read_throttle.pause_s(time.monotonic(), self._read_bytes)
        self._read_bytes = 0
        if pause_s:
            for reader in self._readers.values():
                self.loop.remove_fd(reader)
            self.loop.call_later(pause_s, self._listen)

    def _read_what_waits(self) -> None:
        """Read what the program has printed so far and a pause of the reading has left in the pipes."""
        for name in list(self._readers):
            for _ in range(_PIPE // _PIECE):
                if name not in self._readers or self._read_piece(name) < _PIECE:
                    break

    def _read_piece(self, name: str) -> int:
        """Read one piece, and return its size."""
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
        requests = tail.snapshot_requests
        tail.feed(data)
        if tail.snapshot_requests > requests:
            self.on_snapshot_request(tail.snapshot_requests - requests)
        if name == "stdout":
            self.yields.feed(data)
        log = self.logs[name]
        whole = not log.lost
        log.write(data)
        if whole and log.lost:
            own_log.log(f"{name} is not kept for now: {log.problem}")
        return len(data)

    def _child_ended(self, status: int, usage: Any) -> None:
        self._status, self._largest_kib = status, usage.ru_maxrss
        self._cpu_s = usage.ru_utime + usage.ru_stime
        if self.gpus is not None:
            self.gpus.close()
        if self.image is not None:
            self.image.close()
            if self.image.interrupted or os.WIFSIGNALED(status):
                self.image.remove_later()
        self._end_descendants(time.monotonic())

    def _end_descendants(self, since: float) -> None:
        """Wait until no process is left below this one; end those that do not end by themselves."""
        now = time.monotonic()
        if not self._no_process_left() and now < max(since, self._kill_at or 0.0) + _KILL_LIMIT_S:
            self._end_what_is_left(now, now - since)
            self.loop.call_later(_SCAN_S, lambda: self._end_descendants(since))
            return
        if self._killed:
            own_log.log(f"the program left {len(self._killed)} processes, which were killed: {_names(self._killed)}")
        self._is_alone = True
        self._listen()  # reading may be paused, but nothing more is to come
        self.loop.call_later(_DRAIN_LIMIT_S, self._finish)
        self._finish_if_drained()

    def _end_what_is_left(self, now: float, waited_s: float) -> None:
        left = self.loop.reaper.program_processes()
        if self.image is not None:
            if waited_s >= _TOOL_LEAVE_S:
                self.image.remove_later()
                self._kill_all(left)
        elif self._kill_at is None:
            if waited_s >= _LEAVE_S and left:
                self._kill_at = now + self._grace_s
                names = _names({pid: process_tree.name(pid) for pid in left})
                self.tell_user(left_in_background(names, self._grace_s))
                self._terminate_group()
        elif now >= self._kill_at:
            self._kill_all(left)
        else:
            self._terminate_orphans()

    def _kill_all(self, pids: Sequence[int]) -> None:
        for pid in pids:
            self._killed.setdefault(pid, process_tree.name(pid))
            process_tree.kill(pid, signal.SIGKILL)

    def _no_process_left(self) -> bool:
        """Return whether no process is left: waitpid reports no child, or with helpers two scans of /proc find none."""
        if self.loop.reaper.reap():
            return True
        is_empty = self.loop.reaper.has_helpers and not self.loop.reaper.program_processes()
        self._empty_scans = self._empty_scans + 1 if is_empty else 0
        return self._empty_scans > 1

    def _finish_if_drained(self) -> None:
        if self._is_alone and not self._readers:
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
        if self.image is not None and code is not None and 128 < code < 128 + signal.NSIG:
            number, code = code - 128, None  # as a shell passes it on
        cause, detail = ("exit", "") if number is None else ("signal", killed_by(number))
        if self.image is not None and not self.image.started:
            return self._not_started(self.image, code, number)
        if code != 0:
            oom = self.image.oom if self.image is not None and self.image.oom is not None else self._oom
            killed = signal.SIGKILL in (number, (code or 0) - 128)
            memory = oom.verdict(killed)
            if memory is None and killed and self.image is not None:
                memory = self.image.why_memory()
            if memory is not None:
                cause, detail = "memory", memory
            elif self._port_was_taken():
                template = "exit code {code}: a port it wanted to listen on was taken meanwhile"
                cause, detail = "port", message(template, code=code)
        return Exit(cause, code, number, detail, self.last_lines())

    def _not_started(self, image: ImageProgram, code: Optional[int], number: Optional[int]) -> Exit:
        lines = self.last_lines()
        return Exit("start", code, number, image.why_not_started(lines, code), lines)

    def last_lines(self) -> Tuple[str, ...]:
        """Return the last lines of what it printed that say what went wrong."""
        return choose_last_lines(self.tails["stderr"].lines(), self.tails["stdout"].lines())

    def output_end(self) -> OutputEnd:
        """Return the end of the program's output. If the program was stopped, return the end from before the stop,
        because later output explains nothing."""
        return self._end_when_stopped or output_end(self.tails["stderr"].end, self.tails["stdout"].end)

    def _port_was_taken(self) -> bool:
        early = time.monotonic() - self._started < _PORT_WINDOW_S
        return early and any(tail.contains(_PORT_TAKEN) for tail in self.tails.values())


def wide_pipe() -> Sequence[int]:
    """Make a pipe of the largest size that an unprivileged process may have, so that its writer seldom waits."""
    reader, writer = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(reader, _F_SETPIPE_SZ, _PIPE)
    return reader, writer


def _names(processes: Mapping[int, str]) -> str:
    return ", ".join(f"{name} (pid {pid})" for pid, name in list(processes.items())[:10])
