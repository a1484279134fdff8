"""Taking a file from the writer that died while it was open.

A NameNode counts nothing of the block that was written last, and lets nobody append, until the DataNodes have agreed on
what there is of it (lease recovery). A file that is closed already is said to be so at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from howdah.errors import EngineUnavailable

LIMIT_S, FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 0.5, 4.0


def wait_for_recovery(uri: str, recover: Callable[[], bool]) -> None:
    """Return when the file is closed; `recover` asks the NameNode for it, and says whether it is.

    Raises:
        EngineUnavailable: not within a minute.
    """
    deadline, pause = time.monotonic() + LIMIT_S, FIRST_PAUSE_S
    while not recover():
        if time.monotonic() + pause > deadline:
            raise EngineUnavailable(f"{uri}: its writer is gone, and HDFS has not closed it within {LIMIT_S:.0f} s")
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
