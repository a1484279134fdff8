"""One of howdah's own modules as a process beside the executor: a request on its stdin, JSON lines from its stdout.

Helpers may use libraries, which an executor does without, and may wait for a filesystem, which an executor never does.
The last line is {"ok": true, ...} or {"error": "one sentence"}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Callable, Dict, Mapping, Sequence

from howdah.executor.event_loop import READ, EventLoop
from howdah.executor.process import process_tree

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
Told = Callable[[Mapping[str, Any]], None]
Ended = Callable[[str], None]


class HelperProcess:
    """`told(message)` is called for each line; `ended(problem)` once, when the process is gone: "" when all is well.

    The descriptors in `passed` are open in it under the same numbers. `python` is the interpreter that runs it, whose
    own libraries come before ours; "" is that of the executor. Raises OSError when it can't be started.
    """

    def __init__(
        self,
        loop: EventLoop,
        reaper: process_tree.Reaper,
        argv: Sequence[str],
        request: Mapping[str, Any],
        told: Told,
        ended: Ended,
        passed: Sequence[int] = (),
        python: str = "",
    ) -> None:
        self.loop, self.argv, self.told, self.ended = loop, argv, told, ended
        self._answer: Dict[str, Any] = {}
        self._buffer = b""
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        message = _memory_file(json.dumps(request).encode())
        command = (
            (python, "-c", _FOREIGN_PYTHON_BOOTSTRAP, _paths(), *argv) if python else (sys.executable, "-m", *argv)
        )
        try:
            for file in passed:
                os.set_inheritable(file, True)
            # Away from the program's directory, whose files must not pass for modules.
            streams = (message, writer, 2)
            self.pid = reaper.spawn(command, _environment(python), streams, self._gone, "/", helper=True)
        except OSError:
            os.close(self._reader)
            raise
        finally:
            for file in passed:
                os.set_inheritable(file, False)
            os.close(writer)
            os.close(message)
        self.loop.add_fd(self._reader, READ, lambda _: self._read())

    def listen(self) -> None:
        """Take at once what it has said so far."""
        if self.pid:
            self._read()

    def kill(self) -> None:
        """End it at once; nothing when it is gone."""
        self._signal(signal.SIGKILL)

    def stop(self, grace: float) -> None:
        """TERM, then KILL."""
        self._signal(signal.SIGTERM)
        self.loop.call_later(grace, self.kill)

    def _signal(self, number: int) -> None:
        if self.pid:
            process_tree.kill_group(self.pid, number)

    def _read(self) -> None:
        try:
            data = os.read(self._reader, 65536)
        except BlockingIOError:
            return
        if not data:
            self.loop.remove_fd(self._reader)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict):
            if "ok" in message or "error" in message:
                self._answer = message
            self.told(message)

    def _gone(self, status: int, _: Any) -> None:
        self.pid = 0
        self._read()
        self.loop.remove_fd(self._reader)
        os.close(self._reader)
        problem = "" if self._answer.get("ok") else str(self._answer.get("error") or self._silently(status))
        self.ended(problem)

    def _silently(self, status: int) -> str:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
        return f"{self.argv[0]} ended with {how}"


def _memory_file(content: bytes) -> int:
    file = os.memfd_create("request")
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _environment(python: str) -> Dict[str, str]:
    """Ours. Our own interpreter imports from where we import, whatever the directory."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept if python else {**kept, "PYTHONPATH": _paths()}


def _paths() -> str:
    return os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
