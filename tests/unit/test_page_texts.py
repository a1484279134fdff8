"""Tests what the page's functions make of numbers, commands and failures for people."""

from __future__ import annotations

from typing import Any

import pytest
from page_script import called

from howdah.spec.events import KINDS


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.0006, "< 0.01"),
        (0.25, "0.25"),
        (46.123, "46.12"),
        (1287.4, "1,287"),
        (1234567.8, "1,234,568"),
    ],
)
def test_hours_keep_their_whole_digits(value: float, shown: str) -> None:
    assert called("format.ts", "formatAmount", [value]) == [shown]


def test_costs_have_two_decimals() -> None:
    assert called("format.ts", "formatMoney", [0, 12.3, 1234.567]) == ["0.00", "12.30", "1,234.57"]


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("command", ["howdah", "run", "a b.yaml", "--set", "x=$HOME"], 'howdah run "a b.yaml" --set "x=$HOME"'),
        ("roles.worker.command", ["python", "train.py"], "python train.py"),
        ("files", ["train.py", "data"], "train.py, data"),
    ],
)
def test_a_command_is_compared_as_a_line(path: str, value: list[str], shown: str) -> None:
    assert called("history/specText.ts", "specText", [[path, value]]) == [shown]


@pytest.mark.parametrize(
    ("exit", "heading", "shown"),
    [
        ("exit code 1: ValueError: nan", "ValueError: nan", "（{node}）：{exit}"),
        ("no sign of progress", "no sign of progress", "（{node}）"),
        ("exit code 1", "ValueError: nan", "（{node}）：{exit}"),
        ("", "Cause of the failure", "（{node}）"),
    ],
)
def test_a_failure_is_told_once(exit: str, heading: str, shown: str) -> None:
    end: dict[str, Any] = {"node": "node1", "exit": exit}
    assert called("job/describeEnd.ts", "describeEnd", [[end, heading]]) == [shown]


def test_lines_of_each_level_are_counted() -> None:
    hits = [{"level": "error"}, {"level": "warning"}, {"level": "error"}]
    counted = called("logs/countLevels.ts", "countLevels", [[hits, True], [hits, False], [[], True]])
    assert counted == [
        {"error": 2, "warning": 3, "more": False},
        {"error": 2, "warning": 3, "more": True},
        {"error": 0, "warning": 0, "more": False},
    ]
    assert called("logs/countLevels.ts", "countText", [[7, False], [7, True]]) == ["7", "≥ 7"]


def test_jobs_of_that_name_come_before_jobs_with_that_tag() -> None:
    jobs = [{"name": "resnet", "id": "1"}, {"name": "BERT", "id": "2"}, {"name": "x", "id": "bert-3"}]
    (found,) = called("history/bestFirst.ts", "bestFirst", [[jobs, "bert"]])
    assert [job["id"] for job in found] == ["2", "bert-3", "1"]


def test_each_kind_of_event_has_a_name_in_plain_words() -> None:
    kinds = sorted(KINDS.keys() - {"Used", "Measured"})  # samples, which the list leaves out
    names = called("job/eventKinds.ts", "kindName", kinds)
    assert [kind for kind, name in zip(kinds, names, strict=True) if name == kind] == []
