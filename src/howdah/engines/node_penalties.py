"""Remembers the nodes on which this user's jobs failed: each master writes a file, and each submission reads all files.

The penalty for a failure shrinks with the failure's age. Nothing is locked: a job writes a file of its own,
`strikes/<job id>.json` below howdah's home, and a reader removes files that are too old to count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from howdah.errors import HowdahError
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.wire.helper_main import run_helper_main

HALF_LIFE_S = 6 * 3600.0
FORGOTTEN_S = 4 * HALF_LIFE_S


def penalties_by_node(failures: Iterable[tuple[str, float]], now: float) -> dict[str, float]:
    """Return the penalty of each node at `now`. It is the sum over the node's failures: 1 for a new failure, half of
    that after six hours, and so on. Clocks of nodes differ, so a failure in the future counts as new."""
    penalties: dict[str, float] = {}
    for node, time_ in failures:
        penalties[node] = penalties.get(node, 0.0) + 0.5 ** (max(0.0, now - time_) / HALF_LIFE_S)
    return {node: round(penalty, 3) for node, penalty in penalties.items()}


def read_penalties(home: str, now: float) -> dict[str, float]:
    """Return the penalties of nodes for a job on the cluster with this home. Files that cannot be read are skipped."""
    files, failures = filesystem(home), []
    try:
        entries = files.glob(uris.join(home, "strikes", "*.json"))
    except HowdahError:
        return {}
    for entry in entries:
        try:
            if now - entry.modified_ms / 1000 > FORGOTTEN_S:
                files.delete(entry.uri)
            else:
                failures += [(str(node), float(at)) for node, at in json.loads(files.read_bytes(entry.uri))]
        except (HowdahError, ValueError, TypeError):
            continue
    return penalties_by_node(failures, now)


@dataclass(frozen=True)
class WritePenaltiesRequest:
    """A request to record the nodes that failed a job."""

    home: str
    """URI of howdah's home on the cluster."""
    id: str
    """The job's id."""
    failures: tuple[tuple[str, float], ...]
    """Pairs of a node and the time (epoch seconds) at which it failed the job."""


def write_penalties(request: WritePenaltiesRequest) -> None:
    """Write the file of one job."""
    uri = uris.join(request.home, "strikes", f"{request.id}.json")
    files = filesystem(uri)
    files.mkdirs(uris.parent(uri))
    files.write_bytes(uri, json.dumps(request.failures).encode())


if __name__ == "__main__":
    run_helper_main({"write": write_penalties})
