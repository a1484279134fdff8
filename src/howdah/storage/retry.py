"""Waiting for a file system that does not answer, takes no changes, or is full, where what a program has made is at
stake.

A NameNode that starts again is away for seconds, and in safe mode for as long again; one that is full may have room
again when others have ended. Hours of work must not be given up for that. What is tried again must bear to be done
twice.
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
    """Do it, again and again within the limit as long as nobody answers; within `room_s` as long as there is no room.

    Raises:
        HowdahError: what went wrong at last.
    """
    began = time.monotonic()
    while True:
        try:
            return act()
        except (EngineUnavailable, NoSpace) as error:
            waited, limit = time.monotonic() - began, room_s if isinstance(error, NoSpace) else patience_s
            if waited + again_s > limit:
                raise
            print(f"waits for {waited:.0f} of {limit:.0f} s: {error}", file=sys.stderr, flush=True)
            time.sleep(again_s)
