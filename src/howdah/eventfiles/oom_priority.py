"""Memory of the processes that read for a program which must not end: how much they have, and who goes first.

The rule: a container is ended as a whole when all its processes together are too large, so what reads beside a master
takes a part of it, and ends by itself when it has more (docs/curves.md).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

VARIABLE, OWN = "HOWDAH_MEMORY_MIB", "HOWDAH_CURVES_MIB"
"""What the container has, as far as there is one; what may be held of event files, if somebody has decided that."""
USUAL_MIB, LEAST_MIB, MOST_PROCESSES = 384, 16, 8
PREFER_AS_OOM_VICTIM = 500
"""Of 1000: as if it had half of the machine's memory more than it has (proc(5), oom_score_adj)."""


def budget() -> int:
    """Bytes for what is held of event files: a quarter of the container."""
    usual = max(LEAST_MIB, _number(VARIABLE) // 4) if _number(VARIABLE) else USUAL_MIB
    return (_number(OWN) or usual) << 20


def limit() -> int:
    """Bytes at which the curves service ends: half of the container; 0 for none."""
    own = _number(OWN) + 64 if _number(OWN) else 0
    return max(_number(VARIABLE) // 2, own) << 20 if _number(VARIABLE) else 0


def processes() -> int:
    """How many may read at once: one more, of about 40 MB, for each GiB of the container."""
    return min(MOST_PROCESSES, 1 + _number(VARIABLE) // 1024) if _number(VARIABLE) else MOST_PROCESSES


def resident() -> int:
    """Bytes of this process; 0 where nobody tells."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def go_first() -> None:
    """When memory runs out, this process is to be ended rather than the one that has started it."""
    with contextlib.suppress(OSError):  # another system, or somebody has decided otherwise
        place = Path("/proc/self/oom_score_adj")
        if int(place.read_text()) < PREFER_AS_OOM_VICTIM:
            place.write_text(str(PREFER_AS_OOM_VICTIM))


def _number(variable: str) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else 0
