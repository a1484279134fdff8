"""Derives a container's end from the exit status of its executor, if the engine knows nothing else about it."""

from __future__ import annotations

import signal

from howdah.spec import Exit
from howdah.spec.message import message


def exit_of_status(status: int, reason: str = "") -> Exit:
    """Return the end of an executor. A negative status stands for a signal, and so does one above 128, as shells and
    ssh pass it on. `reason` is the last line that the executor wrote, "" if it is not known."""
    number = -status if status < 0 else status - 128 if 128 < status < 128 + signal.NSIG else 0
    if number:
        detail = message("its executor was killed by signal {number}", number=number)
        return Exit("signal", signal=number, detail=detail)
    if status == 0 or not reason:
        return Exit("exit", status)
    return Exit("exit", status, detail=message("its executor ended with {code}: {reason}", code=status, reason=reason))
