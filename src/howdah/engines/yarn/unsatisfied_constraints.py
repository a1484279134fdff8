"""Notes on containers that wait for a node which satisfies their placement constraint: one for each wait.

The Capacity Scheduler keeps such requests and says nothing; the placement processor rejects them, and they are asked
for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from howdah.spec import JobSpec
from howdah.spec.events import Noted

PATIENCE_S = 5.0
_REASONS = {1: "no node satisfies it", 2: "a node satisfies it, but could not take it"}
_NOT_SAID = "no node satisfies it, or none of those has room"


class UnsatisfiedConstraints:
    """Remembers how long each role has waited, and which notes were written."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._waits: dict[str, tuple[int, float]] = {}
        self._noted: set[str] = set()

    def new_notes(self, waiting: Mapping[str, int], rejected: Mapping[str, int], now: float) -> Iterator[Noted]:
        """Yield new notes; `waiting` counts by role the containers that it lacks, `rejected` has YARN's reason for
        some."""
        for role, text in ((name, spec.placement.constraint) for name, spec in self._job.roles.items()):
            count = waiting.get(role, 0)
            before, since = self._waits.get(role, (0, now))
            if not text or count != before:
                self._waits[role] = (count, now)
                self._noted.discard(role)
            elif count and role not in self._noted and (role in rejected or now - since > PATIENCE_S):
                self._noted.add(role)
                reason = _REASONS.get(rejected.get(role, 0), _NOT_SAID)
                yield Noted(now, f"{role} waits for {count} more, placed as {text!r} (placement.constraint): {reason}")
