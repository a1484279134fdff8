"""`HelperProcess` runs one module of howdah beside the executor: a request on its stdin, JSON lines from its stdout.

A helper may use libraries and may wait for a file system; an executor does neither.
The last line of a helper is {"ok": true, ...} or {"error": "one sentence"}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from howdah.executor.event_loop import READ, EventLoop, Timer
from howdah.executor.process import process_tree
from howdah.spec.codec import encode

_FOREIGN_PYTHON_BOOTSTRAP = """
import json, os, runpy, sys
_, paths, module, *_ = sys.argv
if sys.version_info < (3, 10):
    found = "%s is %d.%d" % (sys.executable, *sys.version_info[:2])
    print(json.dumps({"error": module + " needs Python 3.10, the job's " + found}), flush=True)
    sys.exit(1)
sys.path.extend(paths.split(os.pathsep))
sys.argv[:] = sys.argv[2:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
OnMessage = Callable[[Mapping[str, Any]], None]
OnEnd = Callable[[str], None]
"""Called once with the problem of something that has ended; the problem is "" when all is well."""


class HelperProcess:
    """Runs `argv`, a module and its arguments, or `-c` and a line of code, with `request` on its standard input.

    The event loop calls `on_message(message)` for each line, and `on_end(problem)` once, when the process has ended or
    could not be started. The problem is "" when a module says `ok`, or code ends with status 0; it is the reason of
    `stop` when there was one.

    After `limit_s` seconds (0: no limit), from its start or the last `renew_limit`, the helper is stopped for the
    reason that `late()` returns, and killed `grace_s` seconds after that. The descriptors in `inherited` are open in it
    under the same numbers. `python` is the interpreter that runs it, whose own libraries come before the executor's; ""
    is the executor's interpreter.
    """

    def __init__(
        self,
        loop: EventLoop,
        argv: Sequence[str],
        request: object,
        on_end: OnEnd,
        on_message: Optional[OnMessage] = None,
        *,
        limit_s: float = 0.0,
        late: Optional[Callable[[], str]] = None,
        grace_s: float = 0.0,
        inherited: Sequence[int] = (),
        python: str = "",
        stderr: int = 2,
    ) -> None:
        self.loop, self.on_end, self.on_message = loop, on_end, on_message
        self.pid, self.stop_reason = 0, ""
        self._is_code = argv[0] == "-c"
        self._name = python if self._is_code else argv[0]
        self.answer: Dict[str, Any] = {}
        """The last line of the helper, which is the answer to the request; {} when there is none."""
        self._buffer = b""
        self._limit: Optional[Timer] = None
        try:
            self._start(_command(argv, python), request, inherited, _environment(python), stderr)
        except OSError as error:
            problem = str(error)
            loop.call_later(0.0, lambda: on_end(problem))
            return
        if limit_s:
            self._limit_s, self._limit_from, self._late_grace_s = limit_s, loop.time(), grace_s
            self._late = late or (lambda: f"it took longer than {limit_s:.0f} s")
            self._limit = loop.call_later(limit_s, self._stop_if_late)

    def _start(
        self,
        command: Sequence[str],
        request: object,
        inherited: Sequence[int],
        environment: Mapping[str, str],
        stderr: int,
    ) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        stdin = -1
        try:
            stdin = _memory_file(json.dumps(encode(request)).encode())
            for file in inherited:
                os.set_inheritable(file, True)
            # It runs away from the program's directory, whose files must not pass for modules.
            streams = (stdin, writer, stderr)
            self.pid = self.loop.reaper.spawn(command, environment, streams, self._on_exit, "/", helper=True)
        except OSError:
            os.close(self._reader)
            raise
        finally:
            for file in inherited:
                os.set_inheritable(file, False)
            os.close(writer)
            if stdin >= 0:
                os.close(stdin)
        self.loop.add_fd(self._reader, READ, lambda _: self.read())

    def renew_limit(self) -> None:
        """Let the time limit count from now on."""
        self._limit_from = self.loop.time()

    def _stop_if_late(self) -> None:
        left = self._limit_from + self._limit_s - self.loop.time()
        if left > 0:
            self._limit = self.loop.call_later(left, self._stop_if_late)
        else:
            self.stop(self._late_grace_s, self._late())

    def read(self) -> None:
        """Hand the lines that have arrived so far to `on_message`."""
        try:
            data = os.read(self._reader, 65536) if self.pid else b""
        except BlockingIOError:
            return
        if not data:
            self.loop.remove_fd(self._reader)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._handle_line(line)

    def stop(self, grace_s: float = 0.0, reason: str = "") -> None:
        """Send TERM, and KILL after `grace_s` seconds; KILL at once without a grace. The first reason counts."""
        self.stop_reason = self.stop_reason or reason
        if self.pid:
            process_tree.kill_group(self.pid, signal.SIGTERM if grace_s else signal.SIGKILL)
            if grace_s:
                self.loop.call_later(grace_s, self.stop)

    def _handle_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict):
            if "ok" in message or "error" in message:
                self.answer = message
            if self.on_message is not None:
                self.on_message(message)

    def _on_exit(self, status: int, _: Any) -> None:
        self.read()
        self.pid = 0
        self.loop.remove_fd(self._reader)
        os.close(self._reader)
        if self._limit is not None:
            self._limit.cancel()
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
        ok = self.answer.get("ok") or (self._is_code and status == 0)
        problem = "" if ok else self.answer.get("error") or f"{self._name} ended with {how}"
        self.on_end(self.stop_reason or str(problem))


def _command(argv: Sequence[str], python: str) -> Sequence[str]:
    if argv[0] == "-c":
        return (python or sys.executable, *argv)
    if python:
        return (python, "-c", _FOREIGN_PYTHON_BOOTSTRAP, _import_paths(), *argv)
    return (sys.executable, "-m", *argv)


def _memory_file(content: bytes) -> int:
    file = os.memfd_create("request")
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _environment(python: str) -> Dict[str, str]:
    """Return the executor's environment. The executor's own interpreter imports from the same paths, whatever its
    working directory is."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept if python else {**kept, "PYTHONPATH": _import_paths()}


def _import_paths() -> str:
    return os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
