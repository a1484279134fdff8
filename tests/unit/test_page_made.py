"""The made-up answers that the page is looked at with are as the API's document says, which real answers are, too
(test_answers.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_answers import DOCUMENT, JSON, fits

from howdah.api.routes import ACTIONS, Action

MADE = Path(__file__).parents[2] / "frontend" / "dev" / "made.py"
QUERIES = {"jobs/{job}/series": {"kind": "all", "task": "worker:0"}}


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("made", MADE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("call", sorted(JSON.keys() - {"openapi.json"}))
def test_a_made_up_answer_has_its_calls_shape(made: ModuleType, call: str) -> None:
    asked: dict[str, str] = {"run": "train", "tag": "loss", **QUERIES.get(call, {})}
    answer: Any = made.answer(call.replace("{job}", made.ID).replace("{task}", "worker:0"), asked)
    assert answer is not None
    if "version" not in answer and JSON[call].kept:
        answer = {"version": 1, **answer}
    fits(call, answer)


def test_curves_of_many_points_have_it_as_well(made: ModuleType) -> None:
    fits("jobs/{job}/curves/scalars", made.answer(f"jobs/{made.ID}/curves/scalars", {}, points=50))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_a_made_up_action_has_its_shape(made: ModuleType, action: Action) -> None:
    shape = {"$ref": f"#/components/schemas/{action.answer}", "components": DOCUMENT["components"]}
    Draft202012Validator(shape).validate(made.act(action.name))


def test_each_of_several_runs_is_answered(made: ModuleType) -> None:
    asked = made.query("run=train&run=eval&tag=train%2Floss")
    series = made.answer(f"jobs/{made.ID}/curves/scalars", asked)["series"]
    assert [(one["run"], one["tag"]) for one in series] == [("train", "train/loss"), ("eval", "train/loss")]
