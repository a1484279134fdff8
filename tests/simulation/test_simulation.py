"""Tests jobs on a simulated cluster on which everything fails for a while; a seed repeats its run.

HOWDAH_SEEDS=100000 runs that many, as does `make simulate` (run_seeds.py). A seed that failed once stays in KEPT.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
from collections import Counter
from typing import NamedTuple

import pytest
from jobs import job_of
from runs import simulate

SEEDS = int(os.environ.get("HOWDAH_SEEDS", "1000"))
BLOCK = 50
KEPT = (107, 109, 173, 376, 753, 1350, 1748, 1942, 2331, 2444, 2489, 2747, 2814, 2963, 1126, 1603, 1763, 5288,
        22904, 23460, 606, 668, 5800, 11168, 11422, 968, 2315, 2467, 3057,
        27599, 32272)  # fmt: skip
COUNTED = 300
"""Of so many seeds some tests count what happens in their runs; each is run once for all these tests."""


class Run(NamedTuple):
    """What is kept of a run: what was counted in it, and the job's event log."""

    seen: Counter[str]
    log: str


@functools.cache
def run_of(seed: int) -> Run:
    """Return what happens in the run of a seed below `COUNTED`."""
    simulation = simulate(seed)
    return Run(simulation.seen, "".join(simulation.log))


def run_block(first: int) -> None:
    """Run the seeds from `first` on."""
    for seed in range(first, first + BLOCK):
        try:
            _ = run_of(seed) if seed < COUNTED else simulate(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("first", range(0, COUNTED, BLOCK))
def test_no_invariant_breaks_whatever_happens(first: int) -> None:
    run_block(first)


@pytest.mark.parametrize("first", range(COUNTED, SEEDS, BLOCK))
def test_no_invariant_breaks_in_more_runs(first: int) -> None:
    run_block(first)


@pytest.mark.parametrize("seed", KEPT)
def test_what_went_wrong_once(seed: int) -> None:
    simulate(seed, slow=False, rough=False)
    simulate(seed, clocks=False, slow=False, rough=False)
    simulate(seed, slow=True, rough=False)
    simulate(seed, objects=False)
    simulate(seed, objects=True)


def test_masters_are_ended_replaced_and_refused_and_users_cancel() -> None:
    seen = Counter[str]()
    for seed in range(200):
        seen.update(run_of(seed).seen)
    assert seen["takeovers"] > 200
    assert seen["two masters"] > 20
    assert seen["found out by the log"] > 8
    assert seen["ended politely"] > 30
    assert seen["heartbeats refused"] > 8
    assert seen["cancel while open"] > 3
    assert seen["cancel while committing"] > 10
    assert seen["commits"] > 80
    assert seen["commits by a second master"] > 5
    assert seen["statuses repeated"] > 80
    assert seen["launches refused"] > 8
    assert seen["refusals"] > 1


def test_an_object_store_loses_answers() -> None:
    seen = Counter[str]()
    for seed in range(100):
        seen.update(simulate(seed, objects=True).seen)
    assert seen["takeovers while another lives"] > 10
    assert seen["found out by the log"] > 5
    for what in ("a segment", "a merged file", "a removal"):
        assert seen[f"{what}: its answer is lost"] > 5
        assert seen[f"{what} is written late"] > 5


def can_change_hands(seed: int) -> bool:
    """Return whether the job of a seed, as `simulate` makes it, has spares or is content with fewer workers: in other
    jobs no container changes hands."""
    worker = job_of(random.Random(f"faults {seed}"), random.Random(f"spares {seed}")).roles["worker"]
    return bool(worker.spares or worker.min_replicas)


def test_containers_change_hands() -> None:
    logs = ["".join(simulate(seed, clocks=False).log) for seed in filter(can_change_hands, range(200))]
    assert sum('"kind":"Resized"' in log for log in logs) > 5
    assert sum('"giver":{' in log for log in logs) > 10
    assert any("there is room again" in log for log in logs)


def test_no_executor_is_silent_because_the_master_stood_still_or_its_clock_was_set() -> None:
    logs = ["".join(simulate(seed, troubled=False).log) for seed in range(200)]
    assert sum('"kind":"TimeLost"' in log for log in logs) > 50
    assert not any("not heard for" in log for log in logs)
    broken = ("".join(simulate(seed, "clock", troubled=False).log) for seed in range(200))
    silent = (log for log in broken if "not heard for" in log)
    assert len(list(itertools.islice(silent, 6))) == 6, "without the rule executors are silent"


def test_the_faults_include_programs_that_hang() -> None:
    logs = [run_of(seed).log for seed in range(COUNTED)]
    assert sum('"kind":"Stalled"' in log for log in logs) > 10
    assert sum('"cause":"stalled"' in log for log in logs) > 5
    assert sum('"kind":"LossAnnounced"' in log for log in logs) > 20


def test_nodes_do_not_pass() -> None:
    logs = [run_of(seed).log for seed in range(200)]
    assert sum('"kind":"PreflightPassed"' in log for log in logs) > 20
    assert sum('"cause":"preflight"' in log for log in logs) > 15
    assert sum("pre-flight: all-reduce" in log for log in logs) > 3


def test_a_run_can_be_repeated() -> None:
    assert simulate(7).dump() == simulate(7).dump()
