"""Tests how a run of tests is judged: what a second look may mend, and what it may not."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from run_tests import DAILY, GROUPS, OF_ENGINES, OF_YARN, SLOW, STAGES, Outcome, judge, table

ROOT = Path(__file__).parents[2]


def test_a_test_that_passes_alone_does_not_fail_the_run() -> None:
    outcomes = [Outcome("parts", 10, 100, failed=["tests/unit/test_a.py::test_b"])]
    assert judge(outcomes, failed_again=[]) == []


def test_a_test_that_fails_alone_fails_the_run() -> None:
    outcomes = [Outcome("parts", 10, 100, failed=["a", "b"])]
    assert judge(outcomes, failed_again=["b"]) == ["failed twice: b"]


@pytest.mark.parametrize(("failed", "reasons"), [(3, 0), (4, 1)])
def test_more_than_three_fail_the_run_whatever_they_do_alone(failed: int, reasons: int) -> None:
    outcomes = [Outcome("parts", 10, 100, failed=["a"] * (failed - 1)), Outcome("daily", 10, 100, failed=["b"])]
    assert len(judge(outcomes, failed_again=[])) == reasons


def test_without_a_second_look_each_failure_is_named() -> None:
    assert judge([Outcome("parts", 10, 100, failed=["a"])], failed_again=None) == ["failed: a"]


def test_a_stage_that_could_not_run_fails_the_run() -> None:
    assert judge([Outcome("check", 3, broken="check failed, with exit status 1")], failed_again=[]) == [
        "check failed, with exit status 1"
    ]


def test_the_table_adds_up() -> None:
    lines = table([Outcome("check", 30.4), Outcome("parts", 100, 4000, 2)]).splitlines()
    assert [line.split() for line in lines] == [
        ["stage", "tests", "skipped", "seconds"],
        ["check", "30"],
        ["parts", "4000", "2", "100"],
        ["all", "4000", "2", "130"],
    ]


def test_groups_name_stages_and_daily_tests_exist() -> None:
    assert {stage for stages in GROUPS.values() for stage in stages} <= set(STAGES)
    assert DAILY
    assert [test for test in DAILY if not (ROOT / test.partition("::")[0]).exists()] == []


@pytest.mark.parametrize("test", SLOW)
def test_a_test_that_is_left_out_each_day_exists(test: str) -> None:
    """pytest says nothing of a test to leave out that is not there."""
    path, *names = test.split("::", 2)
    contracts = (ROOT / "tests" / "contract").glob("*_contract.py")  # whose tests others inherit
    text = "".join(file.read_text(encoding="utf-8") for file in (ROOT / path, *contracts))
    for name in names:
        function, _, case = name.partition("[")
        assert re.search(rf"^ *(class|def) {function}\b", text, re.M)
        name = case[:-1]
        assert not name or f'"{name}"' in text or (ROOT / "tests" / "cases" / name).is_dir()


def test_each_file_of_the_clusters_runs_in_one_stage() -> None:
    staged = Counter([*OF_YARN, *(file for files in OF_ENGINES.values() for file in files)])
    assert staged == Counter(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "e2e").glob("test_*.py"))
    assert all(OF_ENGINES.values())
