"""Tests that wrong masters, nodes and executors are detected within the seeds of `make test`.

The same mistakes, made in the source itself, are in tests/mutants/simulated.yaml.
"""

from __future__ import annotations

import pytest
from executors import Broken
from runs import simulate

WRONG = [
    ("lease", "runs twice", 65),
    ("fence", "runs twice|outlasts the fence", 17),
    ("takeover fence", "runs twice", 65),
    ("release", "nobody gives back"),
    ("signs", "no end", 100),
    ("gang", "is formed without"),
    ("grace", "runs twice", 700),
    ("log", "starts a second time", 56),
    ("one log", "write the log|lines of the log are lost|the log tells|runs twice|outlasts the fence", 16),
    ("container", "from another container", 280),
    ("sequence", "an older status"),
    ("decided", "a cancel changes the outcome"),
    ("one commit", "commits twice"),
    ("failed outputs", "are published"),
    ("attempt", "that only lost its master", 44),
    ("refusal", "goes on though it is refused"),
]
"""What is left out (`Simulation.without`), what is seen, and the seed to begin with: those before it show nothing."""


@pytest.mark.parametrize(("without", "seen", "first"), [(*wrong, 0)[:3] for wrong in WRONG])
def test_a_broken_rule_is_seen(without: str, seen: str, first: int) -> None:
    with pytest.raises(Broken, match=seen):
        _ = [simulate(seed % 1000, without) for seed in range(first, first + 1000)]
