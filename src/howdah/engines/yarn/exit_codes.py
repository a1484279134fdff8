"""The meaning of YARN's exit statuses: negative ones are YARN's own (ContainerExitStatus), the others are the
process's."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping

from howdah.spec import Exit
from howdah.spec.containers import TYPE, requested_image
from howdah.spec.message import Message, message

_NEVER_STARTED = -1000
REFUSED = (
    "image {image} is refused: the NodeManager of {node} starts no such container, and its log has the reason; its "
    "administrator may have to name {runtime} in yarn.nodemanager.runtime.linux.allowed-runtimes"
)
# status: (cause, what people read)
STATUSES = {
    -100: ("lost", "the container was given back or its node was lost"),
    -101: ("lost", "the node's disks failed"),
    -102: ("preempted", "preempted: the scheduler gave the room to another queue or job"),
    -103: ("memory", "killed by the node for using too much virtual memory"),
    -104: ("memory", "killed by the node for using too much memory"),
    -105: ("stopped", "stopped by the job's master"),
    -106: ("stopped", "stopped by the ResourceManager"),
    -107: ("stopped", "stopped because the job had ended"),
    -108: ("preempted", "stopped by its node in favour of a guaranteed container"),
    -109: ("logs", "killed by the node for writing more logs than it allows"),
    _NEVER_STARTED: ("localise", "it was never started: its files could not be fetched"),
}
_USAGE = re.compile(
    r"Current usage: ([\d.]+) ?([KMGT]?)B? of ([\d.]+) ?([KMGT]?)B? physical memory used; "
    r"([\d.]+) ?([KMGT]?)B? of ([\d.]+) ?([KMGT]?)B? virtual memory used"
)
_TAIL = re.compile(r"^Last \d+ bytes of (?!prelaunch\.err).*:\s*$", re.MULTILINE)
_SHELL_ERROR = re.compile(r"Shell error output: (.*\S)")
_STAMP = re.compile(r"^\[\d{4}-\d\d-\d\d [^\]]*\]")
_FULL_DISKS = "No space available in any of the local directories"  # LocalDirAllocator of Hadoop
_KEPT_LINES = 20
_ITS_OWN = ("exit", "memory", "logs", "localise", "preempted")


def explain(status: int, diagnostics: str) -> Exit:
    """Return the Exit of a container, from its exit status and YARN's diagnostics."""
    if status in STATUSES:
        cause, sentence = STATUSES[status]
        detail = _memory(status, diagnostics) if cause == "memory" else ""
        if not detail and cause in ("localise", "lost", "logs", "stopped"):
            detail = _with_reason(sentence, diagnostics)
        return Exit(cause, detail=detail or message(sentence))
    lines = last_lines(diagnostics)
    if 128 < status < 128 + signal.NSIG:
        number = status - 128
        template = "killed by signal {number}"
        if number == signal.SIGKILL:
            template = "killed by signal {number} (often the kernel, out of memory)"
        return Exit("signal", signal=number, detail=message(template, number=number), lines=lines)
    if status < 0:
        return Exit("lost", detail=_with_reason("ended by YARN with status {status}", diagnostics, status))
    return Exit("exit", code=status, lines=lines)


def refused_image(status: int, diagnostics: str, variables: Mapping[str, str], host: str) -> Exit | None:
    """Return the Exit of a container that asked for an image by `variables` and was refused. Only for such a container
    does YARN fail to start it without giving a reason (ContainerImpl.RequestResourcesTransition logs the reason and
    reports it to no program)."""
    image = requested_image(variables)
    if status != _NEVER_STARTED or diagnostics.strip() or not image:
        return None
    return Exit("image", detail=message(REFUSED, image=repr(image), node=host, runtime=variables[TYPE]))


def exit_without_master(status: int, diagnostics: str) -> Exit:
    """Return the Exit of a container that ended while there was no master. Whatever ended the master may have ended the
    container, too: the reason counts only if the container itself caused its end, or was preempted."""
    exit = explain(status, diagnostics)
    if exit.cause in _ITS_OWN:
        return exit
    detail = message("its container was gone when the new master took over: {reason}", reason=exit)
    return Exit("withdrawn", detail=detail, lines=exit.lines)


def last_lines(diagnostics: str) -> tuple[str, ...]:
    """Return the end of the process's standard error, which YARN puts into the diagnostics of a failed container;
    otherwise the output of the program that should have started the process, such as docker."""
    matches = list(_TAIL.finditer(diagnostics))
    if not matches:
        return tuple(line.strip() for line in _SHELL_ERROR.findall(diagnostics))
    lines = [_STAMP.sub("", line) for line in diagnostics[matches[-1].end() :].splitlines()]
    return tuple(line for line in lines if line.strip())[-_KEPT_LINES:]


def _memory(status: int, diagnostics: str) -> str:
    match = _USAGE.search(diagnostics)
    if not match:
        return ""
    used, used_unit, limit, limit_unit = match.groups()[:4] if status == -104 else match.groups()[4:]
    template = "killed by the node, used {used} of {limit}"
    if status != -104:
        template = "killed by the node, used {used} of {limit} of virtual memory"
    return message(template, used=_amount(used, used_unit), limit=_amount(limit, limit_unit))


def _amount(number: str, unit: str) -> str:
    return f"{float(number):g} {unit + 'i' if unit else ''}B"


def _with_reason(template: str, diagnostics: str, status: int = 0) -> Message:
    lines = [_STAMP.sub("", line).strip() for line in diagnostics.splitlines()]
    first = next((line for line in lines if line), "")
    if _FULL_DISKS in diagnostics:
        first = f"{os.strerror(errno.ENOSPC)}: {first}"  # the master recognises a full disk by this text
    return message(f"{template}: {{reason}}" if first else template, reason=first, status=status)
