"""Which nodes failed the jobs of this user of late: each master leaves a file, each submission reads them all.

A strike counts for less as it grows older. Nobody locks anything: a job writes a file of its own, `strikes/<job id>`
below howdah's home, and a file that is too old to matter is removed by whoever reads it.
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


def weights(strikes: Iterable[tuple[str, float]], now: float) -> dict[str, float]:
    """What is held against each node at `now`: 1 for a strike just made, a half after six hours. Clocks of nodes
    differ: one that is in the future counts as new."""
    found: dict[str, float] = {}
    for node, time_ in strikes:
        found[node] = found.get(node, 0.0) + 0.5 ** (max(0.0, now - time_) / HALF_LIFE_S)
    return {node: round(weight, 3) for node, weight in found.items()}


def known(home: str, now: float) -> dict[str, float]:
    """What is held against nodes, for a job that is submitted to the cluster whose home this is. Strikes are a help:
    what can't be read is passed over."""
    files, strikes = filesystem(home), []
    try:
        entries = files.glob(uris.join(home, "strikes", "*.json"))
    except HowdahError:
        return {}
    for entry in entries:
        try:
            if now - entry.modified_ms / 1000 > FORGOTTEN_S:
                files.delete(entry.uri)
            else:
                strikes += [(str(node), float(at)) for node, at in json.loads(files.read_bytes(entry.uri))]
        except (HowdahError, ValueError, TypeError):
            continue
    return weights(strikes, now)


@dataclass(frozen=True)
class NotePenaltiesRequest:
    """Write down which nodes failed a job."""

    home: str
    """URI of howdah's home on the cluster."""
    id: str
    """The job's id."""
    strikes: tuple[tuple[str, float], ...]
    """Pairs of a node and the time (epoch seconds) at which it failed the job."""


def note(request: NotePenaltiesRequest) -> None:
    """Write the file of one job."""
    uri = uris.join(request.home, "strikes", f"{request.id}.json")
    files = filesystem(uri)
    files.mkdirs(uris.parent(uri))
    files.write_bytes(uri, json.dumps(request.strikes).encode())


if __name__ == "__main__":
    run_helper_main({"note": note})
