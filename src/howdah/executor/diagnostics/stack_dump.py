"""A helper process (`howdah.wire.helper_main`) dumps the stacks of a program's processes.

Python's stacks come from py-spy, which stops a process for some milliseconds; for other processes, and where py-spy is
missing or may not trace, the dump has what the kernel knows. Command lines are redacted (`howdah.spec.redaction`),
because the dump is stored and shown.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from typing import Iterator, List, Sequence

from howdah.executor.process import process_tree
from howdah.spec import redaction
from howdah.wire.helper_main import run_helper_main
from howdah.wire.helper_messages import StackDumpReply, StackDumpRequest

EACH_S, NATIVE_S = 10.0, 8.0
MAX_PROCESSES = 32
"""The most processes that are dumped; a data loader may have hundreds, which all do the same."""
MAX_TEXT = 200 << 10
MAX_COMMAND = 200
"""Characters of a command line that are shown."""
_AFTER_COMMAND = "\nPython v"
MAX_DATA = 1 << 30
"""Memory that reading native frames may take."""
REFUSED = (
    "the node does not permit reading the program's memory (ptrace): containers need the capability SYS_PTRACE, "
    "other nodes kernel.yama.ptrace_scope 0 or 1"
)


def dump_stacks(request: StackDumpRequest) -> StackDumpReply:
    """Dump the stacks of the first `MAX_PROCESSES` processes, as one text."""
    pids = request.pids
    text = "\n".join(describe_processes(pids[:MAX_PROCESSES], request.tool, request.native, request.secrets))
    if len(pids) > MAX_PROCESSES:
        text += f"\nand {len(pids) - MAX_PROCESSES} more processes\n"
    return StackDumpReply(text[:MAX_TEXT])


def describe_processes(pids: Sequence[int], tool: str, native: bool, secrets: Sequence[str] = ()) -> Iterator[str]:
    """Yield a paragraph for each process, without `secrets` in its command line."""
    if not tool:
        yield "py-spy is not here, so Python's own stacks are not: install howdah[stacks] where the job is submitted\n"
    began = time.monotonic()
    for pid in pids:
        native = native and time.monotonic() - began < NATIVE_S
        python = is_python(pid)
        found = _python_stacks(pid, tool, native, secrets) if python and tool else ""
        if found:
            yield found
        elif os.path.exists(f"/proc/{pid}"):
            yield kernel_state(pid, secrets)


def _python_stacks(pid: int, tool: str, native: bool, secrets: Sequence[str]) -> str:
    found = _dump_native(pid, tool, secrets) if native else _dump(pid, tool, secrets)
    _, begins, stacks = found.partition(_AFTER_COMMAND)
    # py-spy prints the command line first: several lines if an argument has line ends.
    return f"Process {pid}: {command_of(pid, secrets)}{begins}{stacks}" if begins else redaction.text(found, secrets)


def _dump_native(pid: int, tool: str, secrets: Sequence[str]) -> str:
    """Dump with native frames, if the platform has them and reading symbols takes little time and memory."""

    def limit_memory() -> None:
        # This memory counts as the container's: symbols of a large library must not get the program killed.
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA, MAX_DATA))

    command = [tool, "dump", "--native", "--pid", str(pid)]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, timeout=NATIVE_S, check=False, preexec_fn=limit_memory)
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
    found = _dump(pid, tool, secrets)
    return f"{found.rstrip()}\n(no native frames: py-spy can't have them here, or not in {NATIVE_S:.0f} s)\n"


def _dump(pid: int, tool: str, secrets: Sequence[str]) -> str:
    command = [tool, "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=EACH_S, check=False)
    except subprocess.TimeoutExpired:
        problem = f"py-spy took longer than {EACH_S:.0f} s"
    except OSError as error:
        problem = f"{tool} can't be run: {error.strerror}"
    else:
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
        problem = explain_failure(done.stderr.decode("utf-8", "replace"))
    return f"Process {pid}: {problem}\n{kernel_state(pid, secrets)}"


def explain_failure(stderr: str) -> str:
    """Return a sentence about what py-spy has written when it failed."""
    if any(word in stderr for word in ("Permission", "permission", "EPERM", "not permitted", "ptrace")):
        return REFUSED
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"py-spy: {lines[0]}" if lines else "py-spy gave no output"


def is_python(pid: int) -> bool:
    """Return whether a process has a Python interpreter in it."""
    names = {line.rpartition(b"/")[2] for line in process_tree.read(f"/proc/{pid}/maps").splitlines() if b"/" in line}
    return any(name.startswith((b"python", b"libpython")) for name in names)


def kernel_state(pid: int, secrets: Sequence[str] = ()) -> str:
    """Describe a process's threads, and what each waits for in the kernel (proc(5) wchan)."""
    lines: List[str] = [f"Process {pid}: {command_of(pid, secrets)}", "What the kernel says of its threads:"]
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        return f"Process {pid}: gone\n"
    for thread in threads[:MAX_PROCESSES]:
        directory = f"/proc/{pid}/task/{thread}"
        waits_in = _read(directory, "wchan").strip("0")
        lines.append(f"    {thread} {_read(directory, 'comm')}: {_state(directory)} {waits_in}".rstrip())
    return "\n".join(lines) + "\n"


def _state(directory: str) -> str:
    names = {"R": "runs", "S": "sleeps", "D": "waits for a disk", "T": "is stopped", "t": "is traced", "Z": "is dead"}
    letter = _read(directory, "stat").rpartition(")")[2].split()[:1]
    return names.get(letter[0], letter[0]) if letter else "?"


def command_of(pid: int, secrets: Sequence[str] = ()) -> str:
    """Return a process's command line in one line, without `secrets` and words that look like secrets."""
    words = [word for word in _read(f"/proc/{pid}", "cmdline").split("\0") if word]
    text = " ".join(" ".join(redaction.words(words, secrets)).split())
    return text[:MAX_COMMAND] or _read(f"/proc/{pid}", "comm")


def _read(directory: str, name: str) -> str:
    return process_tree.read(f"{directory}/{name}")[:4096].decode("utf-8", "replace").strip()


if __name__ == "__main__":
    run_helper_main({"dump": dump_stacks})
