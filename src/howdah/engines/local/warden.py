"""`python warden.py LIMIT WITHIN_S COMMAND …`: starts a master, and the next attempt of it when it was killed, as YARN
does, unless LIMIT attempts were killed within so many seconds.

It decides nothing else: a master that ends by itself has said how the job ended. Whoever ends the warden ends the
master, which looks whether it lives, as do the executors. Standard library alone, so that it is small.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time

KILLED_TOO_OFTEN = 70


def main(limit: int, within_s: float, command: list[str]) -> int:
    """The exit status of the last attempt."""
    asked: list[int] = []
    killed: list[float] = []
    master = 0

    def hand_on(number: int, _frame: object) -> None:
        asked.append(number)
        if master:
            os.kill(master, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hand_on)
    for attempt in itertools.count(1):
        environment = {**os.environ, "HOWDAH_WARDEN": str(os.getpid()), "HOWDAH_MASTER_ATTEMPT": str(attempt)}
        master = os.posix_spawn(command[0], command, environment)
        if asked:
            os.kill(master, asked[0])
        os.waitid(os.P_PID, master, os.WEXITED | os.WNOWAIT)  # its number is its own until it is forgotten
        ended, master = master, 0
        status = os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1])
        if status >= 0 or asked:
            return status if status >= 0 else 128 - status
        print(f"{time.strftime('%H:%M:%S')} attempt {attempt} of the master was killed by signal {-status}", flush=True)
        killed = [*(moment for moment in killed if time.monotonic() - moment < within_s), time.monotonic()]
        if len(killed) >= limit:
            return KILLED_TOO_OFTEN
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
