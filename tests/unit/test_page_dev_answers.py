"""Tests that the invented answers of frontend/dev have the shapes of the API's document (test_api_openapi.py)."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_api_openapi import DOCUMENT, JSON, fits

from howdah.api.routes import ACTIONS, Action

DIRECTORY = Path(__file__).parents[2] / "frontend" / "dev"
QUERIES = {"jobs/{job}/series": {"kind": "all", "task": "worker:0"}}


@pytest.fixture(scope="module")
def fake_answers() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DIRECTORY)
        return importlib.import_module("fake_answers")


@pytest.mark.parametrize("call", sorted(JSON.keys() - {"openapi.json"}))
def test_an_invented_answer_has_the_shape_of_its_call(fake_answers: ModuleType, call: str) -> None:
    params: dict[str, str] = {"run": "train", "tag": "loss", **QUERIES.get(call, {})}
    answer: Any = fake_answers.answer(call.replace("{job}", fake_answers.ID).replace("{task}", "worker:0"), params)
    assert answer is not None
    if "version" not in answer and JSON[call].cached:
        answer = {"version": 1, **answer}
    fits(call, answer)


def test_scalars_of_many_points_have_the_shape(fake_answers: ModuleType) -> None:
    fits("jobs/{job}/curves/scalars", fake_answers.answer(f"jobs/{fake_answers.ID}/curves/scalars", {}, points=50))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_invented_answer_to_an_action_has_its_shape(fake_answers: ModuleType, action: Action) -> None:
    shape = {"$ref": f"#/components/schemas/{action.answer}", "components": DOCUMENT["components"]}
    Draft202012Validator(shape).validate(fake_answers.action_answer(action.name))


def test_each_of_several_runs_is_answered(fake_answers: ModuleType) -> None:
    params = fake_answers.parse_query("run=train&run=eval&tag=train%2Floss")
    series = fake_answers.answer(f"jobs/{fake_answers.ID}/curves/scalars", params)["series"]
    assert [(one["run"], one["tag"]) for one in series] == [("train", "train/loss"), ("eval", "train/loss")]
