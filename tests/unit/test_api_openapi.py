"""Tests that real answers of each JSON call have exactly the fields that openapi.json describes."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import Any

import event_files as files
import pytest
from history_jobs import BEGAN, begun, ended, job_id, whole, write
from jsonschema import Draft202012Validator
from test_eventfiles_checkpoint_contents import safetensors
from test_history_server import Caller, ask, options

from howdah.api.openapi import openapi
from howdah.api.routes import ACTIONS, ROUTES
from howdah.eventfiles.proto import event_pb2
from howdah.history.server import HistoryServer
from howdah.spec import Checkpoint, uris
from howdah.spec.events import StacksTaken
from howdah.spec.job import Board

JSON = {call.path: call for call in ROUTES if "/" not in call.answer}
DOCUMENT = openapi()
for _schema in DOCUMENT["components"]["schemas"].values():
    _schema["additionalProperties"] = False


def schema_of(path: str, method: str = "get") -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][f"/api/v1/{path}"][method]["responses"]["200"]["content"]
    return found["application/json"]["schema"]  # type: ignore[no-any-return]


def fits(path: str, answer: Any) -> None:
    """It is as the document says; the version of what is kept stands beside its shape."""
    call, own = JSON[path], answer
    if call.cached and "unchanged" not in answer:
        own = {name: value for name, value in answer.items() if name != "version"}
        assert isinstance(answer["version"], int)
    name = "Unchanged" if "unchanged" in answer else call.answer
    Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}).validate(own)
    Draft202012Validator({**DOCUMENT, "anyOf": [{}]}).check_schema(schema_of(path))


def event_file(directory: Path) -> None:
    """With something of every kind."""
    histogram, text, hparams = files.event(1), files.event(1), files.event(0)
    histogram.summary.value.add(tag=b"weights").histo.CopyFrom(
        event_pb2.Histogram(min=0, max=2, num=3, sum=3, sum_squares=5, bucket_limit=[1, 2], bucket=[1, 2])
    )
    said = text.summary.value.add(tag=b"notes")
    said.metadata.plugin_data.plugin_name = b"text"
    said.tensor.dtype = 7
    said.tensor.string_val.append(b"hello")
    session = event_pb2.HParamsPluginData()
    session.session_start_info.hparams["lr"].number_value = 0.1
    session.session_start_info.hparams["bad"].number_value = float("nan")
    told = hparams.summary.value.add(tag=b"_hparams_/session_start_info")
    told.metadata.plugin_data.plugin_name = b"hparams"
    told.metadata.plugin_data.content = session.SerializeToString()
    odd = [files.scalar("loss", 90, float("nan")), files.scalar("loss", 91, float("inf"))]
    media = [files.audio("a", 1, files.WAV), files.precision_recall("pr", 1, [[1], [1], [0], [0], [0.5], [1]])]
    more = [each.SerializeToString() for each in (histogram, text, hparams)]
    files.put(directory, [*files.curve("loss", range(50)), *odd, files.image("i", 3, files.PIXEL), *more, *media])


def asked(caller: Caller, path: str, target: str = "", query: str = "") -> Any:
    status, answer = caller.get(f"{target or path}?{query}")
    assert status == 200, answer
    fits(path, answer)
    return answer


def test_each_call_answers_as_it_is_described(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    kept, runs, home = tmp_path / "kept", tmp_path / "runs", tmp_path / "home"
    kept.mkdir()
    safetensors(kept / "model-7.safetensors", w=np.array([1.0, np.nan], "float32"))
    event_file(runs)
    places = {"board": Board(str(runs)), "checkpoint": Checkpoint(uris.of_local(kept))}
    whole(home, 2)
    one = "local-1"
    stacks = StacksTaken(BEGAN + 1020, uri=uris.of_local(home / "jobs" / one / "stacks" / "1.txt"))
    log = write(home, one, [*begun(1, **places), stacks, *ended(1)])  # type: ignore[arg-type]
    (log.parent / "stacks").mkdir()
    (log.parent / "stacks" / "1.txt").write_text("==> worker:0 <==\nThread 1\n")
    log.write_text(log.read_text().replace('"engine":"yarn"', '"engine":"local"'))
    printed = log.parent / "tasks" / "worker-0" / "1"
    printed.mkdir(parents=True)
    (printed / "stdout").write_text("x\n")

    def questions(_: HistoryServer, caller: Caller) -> None:
        done: set[str] = set()

        def of(path: str, query: str = "") -> Any:
            done.add(path)
            return asked(caller, path, path.replace("{job}", one).replace("{task}", "worker:0"), query)

        first = of("jobs")
        assert of("jobs", f"since={first['version']}")["unchanged"] is True
        for path in (
            "server",
            "openapi.json",
            "users",
            "session",
            "jobs/{job}/timeline",
            "jobs/{job}/tasks",
            "jobs/{job}",
        ):
            of(path)
        of("compare", f"jobs={one},{job_id(2)}")
        of("trace", "of=node0:100")
        of("jobs/{job}/events")
        of("jobs/{job}/row")
        assert of("jobs/{job}/stacks")["stacks"] == {"worker:0": "Thread 1\n"}
        assert of("jobs/{job}/logs/{task}", "lines=1")["first_line"] == 1
        assert [line["text"] for line in of("jobs/{job}/logs/merged", "task=worker:0")["lines"]] == ["x"]
        of("jobs/{job}/search", "text=x")
        of("jobs/{job}/series", "name=memory_mib")
        runs = of("jobs/{job}/curves/runs")
        assert runs["runs"][0]["tags"] == {
            **{"scalar": ["loss"], "histogram": ["weights"], "image": ["i"], "text": ["notes"], "hparams": True},
            **{"audio": ["a"], "pr_curve": ["pr"]},
        }
        assert of("jobs/{job}/curves/runs", f"since={runs['version']}")["unchanged"] is True
        assert of("jobs/{job}/curves/scalars")["series"][0]["nan"] == 1
        assert of("jobs/{job}/curves/histograms")["steps"]
        assert of("jobs/{job}/curves/distributions")["steps"]
        assert of("jobs/{job}/curves/images")["images"]
        assert of("jobs/{job}/curves/audio")["steps"]
        assert of("jobs/{job}/curves/pr_curves")["steps"][0]["points"] == [[1.0, 0.5, 0.0]]
        assert of("jobs/{job}/curves/text")["texts"]
        assert of("jobs/{job}/curves/hparams")["runs"][0]["values"]["bad"] == "NaN"
        (found,) = of("jobs/{job}/checkpoints")["checkpoints"]
        uri = urllib.parse.quote(found["uri"])
        assert of("jobs/{job}/checkpoints/tensors", f"uri={uri}")["tensors"][0]["shape"] == [2]
        assert of("jobs/{job}/checkpoints/statistics", f"uri={uri}&name=w")["nan"] == 1
        assert done == JSON.keys()

    ask(options(tmp_path), questions)


def test_a_wrong_answer_does_not_pass() -> None:
    from jsonschema import ValidationError

    for answer in (
        {"checkpoints": []},
        {"checkpoints": [], "errors": [], "more": 1},
        {"checkpoints": {}, "errors": []},
    ):
        with pytest.raises(ValidationError):
            fits("jobs/{job}/checkpoints", answer)


def test_nothing_that_answers_json_lacks_a_schema() -> None:
    for path, call in JSON.items():
        assert call.answer, path
        assert schema_of(path) != {}
    for action in ACTIONS:
        assert "$ref" in schema_of(f"jobs/{{job}}/actions/{action.name}", "put")
    json.dumps(DOCUMENT)
