"""`retry_until`: repeats a call while a file system does not answer, takes no changes or is full.

It is for calls that save what a program has made: a NameNode that restarts is away for seconds, and in safe mode for as
long again; a full file system may have room again when other jobs have ended. Hours of work must not be lost for that.
The call must have the same effect when it is made twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from howdah.errors import EngineUnavailable
from howdah.storage.filesystem import NoSpace

T = TypeVar("T")
PATIENCE_S, ROOM_S, AGAIN_S = 180.0, 60.0, 3.0


def retry_until(
    act: Callable[[], T], patience_s: float = PATIENCE_S, again_s: float = AGAIN_S, room_s: float = ROOM_S
) -> T:
    """Call `act`, and repeat it for `patience_s` while the file system does not answer, for `room_s` while it is full.

    Raises:
        HowdahError: the last attempt failed.
    """
    began = time.monotonic()
    while True:
        try:
            return act()
        except (EngineUnavailable, NoSpace) as error:
            waited, limit = time.monotonic() - began, room_s if isinstance(error, NoSpace) else patience_s
            if waited + again_s > limit:
                raise
            print(f"retrying for {limit:.0f} s ({waited:.0f} s so far): {error}", file=sys.stderr, flush=True)
            time.sleep(again_s)
