"""Decides by heartbeats: when an executor counts as dead, and until when its program may still run.

An executor sends a heartbeat every 2 s (`howdah.executor.master_link.heartbeat`), and each answer renews its lease. It
counts as dead long before its lease ends, and no other program of its task starts before the fence ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from howdah.spec import Exit, StagedFile
from howdah.spec.message import message
from howdah.wire.messages import Goal, Phase

GREET_S = 120.0
"""Seconds after its container's start within which an executor must send its first status, beside the time in which a
node may fetch its files."""
SLOW_BYTES_S = 4 << 20
"""Bytes a second at which even a busy node fetches and unpacks files; some do so before an executor starts."""
SILENT_S = 9.0
"""Seconds without a heartbeat after which an executor counts as dead. The decision falls within 10 s, since executors
are checked twice a second; their heartbeat comes every 2 s."""
LEASE_S = 20.0
"""Seconds without an answer from its master after which an executor ends its program and itself."""
STOPPED_LEASE_S = 10.0
"""The lease, in seconds, of an executor that is ordered to stop; it is shorter."""
FENCE_S = LEASE_S + 3.0
"""Seconds of the fence of a task, counted from when the master last heard its executor: an answer may be under way for
two seconds. Until the fence ends, the program may still run somewhere, and no other program of the same task is
started."""
TAKEOVER_S = 3.0
"""Seconds for which a master that has been replaced may still renew leases after another master owns the log: it reads
the log every second, relies on what it read for two seconds, and claiming the log takes a moment."""


def greet_limit_s(files: Iterable[StagedFile], extra_s: float = 0.0) -> float:
    """Return the limit for the first status of an executor whose node fetches these files, and which its engine may
    start `extra_s` seconds later."""
    return GREET_S + sum(file.size for file in files) / SLOW_BYTES_S + extra_s


def exit_of_unheard(
    phase: Phase | None, launched_at: float, heard_at: float, now: float, greet_s: float = GREET_S
) -> Exit | None:
    """Return the end of an executor that has not sent a status within `greet_s` seconds (`phase` is None), or sends
    none any more; None while it is in time."""
    if phase is None and now - launched_at > greet_s:
        template = "its executor did not report within {seconds} s of its container's start"
        return Exit("start", detail=message(template, seconds=f"{greet_s:.0f}"))
    if phase is not None and now - heard_at > SILENT_S:
        return Exit("silent", detail=message("not heard for {seconds} s", seconds=f"{now - heard_at:.0f}"))
    return None


def lease_s(goal: Goal) -> float:
    """Return the lease of an executor that is ordered towards `goal`."""
    return STOPPED_LEASE_S if goal is Goal.STOP else LEASE_S
