"""Tests how the keys of a call of `howdah.run` become a job."""

from __future__ import annotations

import datetime
import enum
import pickle
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import howdah
from howdah.errors import SpecError
from howdah.functions import function_job
from howdah.functions.function_job import make_job, read_job
from howdah.spec import JobSpec, Outcome, State, uris
from howdah.spec.view import JobView


def job(**keys: Any) -> JobSpec:
    engine, settings = SimpleNamespace(), {"environment": ""}
    keys = {"environment": {"python": "/usr/bin/python3"}, **keys}
    return make_job(Path("/tmp/call"), "file:///results", keys, engine, settings)  # type: ignore[arg-type]


def test_texts_arrive_byte_for_byte() -> None:
    texts = {"A": "x\x85y", "B": "\x7f", "C": "\u2028 \ufeff", "D": "no", "E": "~", "F": "1e3"}
    assert read_job({"env": texts}, ("true",)).env == texts


def test_values_are_those_of_python(tmp_path: Path) -> None:
    read = job(replicas=2, memory=2048, retries=3, gang=False, queue=None, files=[tmp_path / "a.py"], env={"N": 3})
    worker = read.roles["worker"]
    assert (worker.replicas, worker.resources.memory_mib, read.retries, read.gang) == (2, 2048, 3, False)
    assert (read.queue, read.files, read.env) == ("", (f"{tmp_path}/a.py", "/tmp/call"), {"N": "3"})


def test_values_of_other_types_are_their_text() -> None:
    class Level(int, enum.Enum):
        HIGH = 3

    day = datetime.date(2026, 11, 30)
    assert job(env={"DAY": day, "N": numpy.int64(4), "B": numpy.bool_(True)}, retries=Level.HIGH).retries == 3
    assert dict(job(env={"DAY": day, "N": numpy.int64(4)}).env) == {"DAY": "2026-11-30", "N": "4"}


@pytest.mark.parametrize("python", ["ve", "ve/bin/python", "{here}/ve"])
def test_the_tasks_call_the_interpreter_of_an_environment_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    (tmp_path / "ve/bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    command = job(environment={"python": python.format(here=tmp_path)}).roles["worker"].command
    assert command[0] == "python"
    assert job().roles["worker"].command[0] == "/usr/bin/python3"


@pytest.mark.parametrize("value", [None, (), []])
def test_a_list_that_is_not_given_is_empty(value: object) -> None:
    read = job(files=value, outputs=value)
    assert (read.files, len(read.outputs)) == (("/tmp/call",), 1)


def inside_itself() -> dict[str, Any]:
    """Return a structure that contains itself."""
    value: dict[str, Any] = {}
    value["a"] = [value]
    return value


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"files": Path("x")}, "files: is a text, must be a list"),
        ({"outputs": "x"}, "outputs: is a text, must be a list"),
        ({"files": 3}, "files: must be a list"),
        ({"files": {"a.py": "b.py"}}, "files: must be a list"),
        ({"cpus": 2}, r"cpus: is not a key .* \(did you mean 'vcores'\?\)"),
        ({"replica": 2}, r"replica: is not a key .* \(did you mean 'replicas'\?\)"),
        (
            {"env": {"A": b"x"}},
            r"^env.A: is b'x', must be text, a number, a boolean, a list or a mapping \(the call\)$",
        ),
        ({"env": inside_itself()}, r"^env.a: is nested deeper than 32 levels \(the call\)$"),
        ({"env": {"A": 10**5000}}, r"^env.A: cannot be written as text: Exceeds the limit \(4300 digits\)[\w ]*\(the"),
        ({"retries": Fraction(10**5000)}, r"^retries: cannot be written as text: Exceeds the limit"),
        ({"env": {10**5000: "x"}}, r"^env: cannot be written as text: Exceeds the limit"),
        ({"inputs": [{"path": {1}}]}, r"^inputs.0.path: is \{1\}, must be text"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        job(**keys)


def test_results_are_those_of_the_tasks_that_an_elastic_gang_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(job: JobSpec) -> tuple[JobView, Outcome]:
        kept = Path(uris.path(job.outputs[-1].path), "worker-0", "result.pickle")
        kept.parent.mkdir(parents=True)
        kept.write_bytes(pickle.dumps([(0, 4), (1, 5)]))
        return JobView(id="job_1", job=job, sizes={"worker": 1}), Outcome(State.SUCCEEDED)

    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    monkeypatch.setattr(function_job, "prepare", lambda job, *_, **__: job)
    monkeypatch.setattr(function_job, "_run", run)
    keys = {"replicas": 2, "min_replicas": 1, "gang": True, "on": "local"}
    assert howdah.map(abs, [4, -5], **keys) == [4, 5]
    assert howdah.run_all(abs, 4, **keys) == [[(0, 4), (1, 5)]]
