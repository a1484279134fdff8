"""What the helper that stores checkpoints answers, also when it has stored but some of them."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.spec.values import dataclass
from howdah.wire.helper_messages import DirectorySyncReply

MAX_NAMED = 3
"""Most files that one line names."""


@dataclass(frozen=True)
class StoreReply(DirectorySyncReply):
    """What was stored, and what is kept of what was there before, also if something could not be stored."""

    error: str = ""
    """Why not all was stored, in one line; "" if all was."""


def name_some(names: Sequence[str]) -> str:
    """Return the first of several names for one line."""
    return ", ".join([*names[:MAX_NAMED], *(["…"] if len(names) > MAX_NAMED else [])])
