"""Tests that every golden job of every compat command survives being written as a job file and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import test_submarine
import test_tony
import test_xlearning
from click.testing import CliRunner

from howdah.compat import Parsed
from howdah.compat.convert import convert, job_file_object, job_file_text
from howdah.config.job_file import loads, to_yaml
from howdah.spec.codec import to_json

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.glob("*/*.json") if "job" in json.loads(path.read_text()))


def parsed(path: Path, case: dict[str, Any], directory: Path) -> Parsed:
    if path.parent.name == "submarine":
        return test_submarine.parse(case, directory)
    if path.parent.name == "tony":
        return test_tony.parse(case, directory)
    return test_xlearning.COMMANDS[path.parent.name].parse(case["argv"])


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_converted_job_file_reads_back_as_the_job(path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_text())
    result = parsed(path, case, tmp_path)
    text = job_file_text(result, path.parent.name, ("a.properties",))
    job, _ = loads(text, "job.yaml", {}, {})
    assert job == result.job
    assert all(f"# {note}" in text for note in result.notes)
    told = json.loads(to_json(job_file_object(result, path.parent.name, ("a.properties",))))
    assert loads(json.dumps(told["job"]), "job.json", {}, {})[0] == result.job
    assert told["notes"][: len(result.notes)] == list(result.notes)


def test_the_job_file_is_printed_as_json() -> None:
    words = ["xl-submit", "--app-type", "tensorflow", "--worker-num", "2", "--launch-cmd", "python a.py --json"]
    done = CliRunner().invoke(convert, ["--json", *words])
    told = json.loads(done.stdout)
    assert told["job"]["roles"]["worker"]["replicas"] == 2
    assert told["notes"]
    assert done.stdout.count("\n") == 1


def test_all_compat_commands_are_here() -> None:
    assert {path.parent.name for path in CASES} == {"hbox", "submarine", "tony", "xlearning"}


def test_variables_of_the_shell_stay_the_shells(tmp_path: Path) -> None:
    words = ["job", "run", "--name", "a", "--num_workers", "1", "--worker_resources", "memory=1G"]
    job = test_submarine.Submarine(tmp_path).parse([*words, "--worker_launch_cmd", "x ${A} $HOME %input%\n# y"]).job
    assert loads(to_yaml(job), "job.yaml", {}, {})[0] == job


def test_variables_to_set_are_shown_with_their_values_but_no_secret(tmp_path: Path) -> None:
    case = json.loads((HERE / "submarine" / "keytab.json").read_text())
    text = job_file_text(parsed(HERE / "submarine" / "keytab.json", case, tmp_path), "submarine", ())
    assert f"# set these where you submit: KRB5_CLIENT_KTNAME=FILE:{tmp_path}/me.keytab KRB5CCNAME=MEMORY" in text
    case = json.loads((HERE / "hbox" / "s3.json").read_text())
    result = parsed(HERE / "hbox" / "s3.json", case, tmp_path)
    text = job_file_text(result, "hbox", ())
    hidden = [name for name in result.variables if f"env:{name}" in result.job.secrets.values()]
    assert hidden
    assert all(f"{name}=(its value is a secret)" in text for name in hidden)
    assert not any(result.variables[name] in text for name in hidden)
