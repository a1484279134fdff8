"""The answer of the helper that stores checkpoints, even if it has stored only some of them."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.spec.values import dataclass
from howdah.wire.helper_messages import DirectorySyncReply

MAX_NAMED = 3
"""The most files that one line names."""


@dataclass(frozen=True)
class StoreReply(DirectorySyncReply):
    """The files that were stored, and the earlier files that are kept, even if some could not be stored."""

    error: str = ""
    """Why not all was stored, in one line; "" if all was."""


def name_some(names: Sequence[str]) -> str:
    """Return the first of several names for one line."""
    return ", ".join([*names[:MAX_NAMED], *(["…"] if len(names) > MAX_NAMED else [])])
