"""`retry_until`: repeats a call while a file system does not answer, takes no changes or is full.

Its defaults are for calls that save the results of a program: a NameNode that restarts is away for seconds, and in safe
mode for as long again; a full file system may have room again when other jobs have ended. Hours of work must not be
lost because of that. The call must have the same effect when it is made twice. `howdah.storage.hdfs.client` repeats
writes after a DataNode failed; `howdah.hadoop.failover` asks the other servers of a pair, and repeats that by itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from howdah.errors import EngineUnavailable
from howdah.storage.filesystem import NoSpace

T = TypeVar("T")
AGAIN_S = 3.0
"""Seconds between two tries."""
LIMITS_S: Mapping[type[Exception], float] = {NoSpace: 60.0, EngineUnavailable: 180.0}
"""Limit in seconds by class of error: other jobs may make room within a minute; a NameNode restarts within three."""


def retry_until(
    act: Callable[[], T],
    limits_s: Mapping[type[Exception], float] = LIMITS_S,
    pause_s: float = AGAIN_S,
    max_pause_s: float = AGAIN_S,
    quiet: bool = False,
) -> T:
    """Call `act`, and repeat it after errors of the classes in `limits_s`, which gives the limit of each class in
    seconds. Pauses double.

    Raises:
        HowdahError: the last attempt failed.
    """
    began = time.monotonic()
    while True:
        try:
            return act()
        except tuple(limits_s) as error:
            waited = time.monotonic() - began
            limit = next(limit for kind, limit in limits_s.items() if isinstance(error, kind))
            if waited + pause_s > limit:
                raise
            if not quiet:
                print(f"retrying for {limit:.0f} s ({waited:.0f} s so far): {error}", file=sys.stderr, flush=True)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, max_pause_s)
