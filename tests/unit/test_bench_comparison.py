"""Tests how the quick benchmark compares what it measured with what is kept, and that what is kept can be read."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "bench" / "comparison.py"


def load_module() -> ModuleType:
    """`bench` is no part of the package, and is found in its own directory only."""
    spec = importlib.util.spec_from_file_location("bench_comparison", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_comparison"] = module
    spec.loader.exec_module(module)
    return module


comparison = load_module()
Ratio, Kept = comparison.Ratio, comparison.Kept


def judge(kept: float, now: float) -> str:
    (verdict,) = comparison.compare({"name": Ratio.of([kept])}, {"name": Ratio.of([now])})
    return verdict.kind


@pytest.mark.parametrize(
    ("now", "kind"), [(2.0, "same"), (2.19, "same"), (2.21, "worse"), (1.81, "same"), (1.79, "better"), (9.0, "worse")]
)
def test_more_than_a_tenth_above_the_kept_median_is_worse(now: float, kind: str) -> None:
    assert judge(2.0, now) == kind


def test_medians_are_compared_whatever_single_rounds_say() -> None:
    kept, now = Ratio.of([1.0, 1.0, 1.0]), Ratio.of([0.5, 1.05, 40.0])
    (verdict,) = comparison.compare({"name": kept}, {"name": now})
    assert (verdict.kind, verdict.failed) == ("same", False)
    assert verdict.text == "1.050, kept 1.000 (+5.0%)"
    assert (now.low, now.high, now.rounds) == (0.5, 40.0, 3)


def test_what_is_kept_and_not_measured_fails_unless_its_rival_is_not_there() -> None:
    kept = {"lost": Ratio.of([1.0]), "rival": Ratio.of([1.0]), "here": Ratio.of([1.0])}
    verdicts = comparison.compare(kept, {"here": Ratio.of([1.0])}, ["rival"])
    assert [(one.name, one.kind) for one in verdicts if one.failed] == [("lost", "missing")]


def test_what_is_new_or_better_fails_nothing() -> None:
    verdicts = comparison.compare({"old": Ratio.of([1.0])}, {"old": Ratio.of([0.5]), "new": Ratio.of([7.0])})
    assert [(one.name, one.kind, one.failed) for one in verdicts] == [("old", "better", False), ("new", "new", False)]


def test_times_beside_other_work_replace_nothing() -> None:
    before = Kept({"time": Ratio.of([1.0]), "size": Ratio.of([1.0])}, "2026-01-01")
    busy = Kept(
        {"time": Ratio.of([9.0]), "other time": Ratio.of([9.0]), "size": Ratio.of([2.0])}, "2026-01-31", {}, 0.3
    )
    kept = comparison.keep_ratios(before, busy, ["time", "other time"])
    assert {name: ratio.median for name, ratio in kept.ratios.items()} == {"time": 1.0, "size": 2.0}
    assert kept.date == "2026-01-31"
    quiet = Kept(busy.ratios, "2026-01-31", {}, 0.95)
    assert comparison.keep_ratios(before, quiet, ["time", "other time"]) == quiet


def test_what_is_kept_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = Kept({"name": Ratio(1.5, 1.25, 2.0, 7)}, "2026-01-31", {"cores": 2}, 0.95)
    comparison.save(kept, tmp_path / "ratios.json")
    assert comparison.load(tmp_path / "ratios.json") == kept
    assert comparison.load(tmp_path / "nothing.json").ratios == {}


def test_the_kept_ratios_can_be_read() -> None:
    kept = comparison.load()
    assert kept.date
    assert kept.machine["cores"]
    for name, ratio in kept.ratios.items():
        assert 0 < ratio.low <= ratio.median <= ratio.high, name
