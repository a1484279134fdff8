"""Deliberately wrong masters, nodes and executors: the simulated cluster sees each within the seeds of `make test`.

The same mistakes, made in the source itself, are in tests/mutants/simulated.yaml.
"""

from __future__ import annotations

import pytest
from executors import Broken
from runs import simulate

WRONG = [
    ("lease", "runs twice"),
    ("fence", "runs twice|outlasts the fence"),
    ("takeover fence", "runs twice"),
    ("release", "nobody gives back"),
    ("signs", "no end"),
    ("gang", "is formed without"),
    ("grace", "runs twice"),
    ("log", "starts a second time"),
    ("one log", "write the log|the log tells|runs twice|outlasts the fence"),
    ("container", "from another container"),
    ("sequence", "an older status"),
    ("decided", "a cancel changes the outcome"),
    ("one commit", "commits twice"),
    ("failed outputs", "are published"),
    ("attempt", "that only lost its master"),
    ("refusal", "goes on though it is refused"),
]
"""What is left out (`Simulation.without`), and what is seen."""


@pytest.mark.parametrize(("without", "seen"), WRONG)
def test_a_broken_rule_is_seen(without: str, seen: str) -> None:
    with pytest.raises(Broken, match=seen):
        _ = [simulate(seed, without) for seed in range(1000)]
