"""Tests that both specs which the page copies are job files, and differ from the original by masked secrets only."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from page_script import FRONTEND, run_node

from howdah.api import serializers
from howdah.cli.run import plan
from howdah.client.provenance import Provenance
from howdah.config.job_file import load, loads, to_yaml
from howdah.config.job_file_redaction import mask_job_file
from howdah.frameworks import find
from howdah.spec import Environment, JobSpec, Role, events, redaction
from howdah.spec.fold import fold

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/job.yaml"))
KINDS = ("submitted", "resolved")
YAML = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"),
  { compilerOptions: { module: 1, target: 9 } });
const page = {};
new Function("exports", made.outputText)(page);
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map((value) => page.toYaml(value))));
"""
SECRETS = """
env:
  DB_PASSWORD: hunter2 # password: hunter2
  "API_KEY": 'hunter2'
  RATE: "0.1"
  THEIR_TOKEN: ${HOME}
  MY_PASSPHRASE: |
    hunter2
    hunter2
labels: { team: a, api_token: hunter2 }
links: { board: "http://me:hunter2@host/x" }
"""
ROLES = """
name: copied
roles:
  worker:
    command: |
      set -e
      export DB_PASS=hunter2

      python train.py --password hunter2 --passes 3
    replicas: 2
    resources: { memory: 512MiB, vcores: 1 }
    preemption: { signal: USR1, grace: 90s }
  flow: { command: [python, t.py, --token, hunter2, "--api-key=hunter2"], env: { S3_SECRET_KEY: hunter2, A: b } }
  more: { command: x, env: { MY_TOKEN: "${HOME}", A: b } }
  list:
    command:
      - python
      - --db-password
      - hunter2
      - --lr
  token: { command: "t --password hunter2; true", after: [worker] }
  folded:
    command: >-
      t --password hunter2
      --lr 1
secrets: { A_TOKEN: "env:HOME", B_TOKEN: env:HOME, C_TOKEN: file:/run/token }
outputs:
  - { path: /tmp/none, from: model, tasks: "worker:0", save: { every: 1h30min } }
timeouts: { run: 2h, stop: 1500ms }
"""


def shown(spec: JobSpec, text: str) -> dict[str, Any]:
    """The page's answer for a job that was submitted so."""
    with Provenance(spec, Path("/none"), Path("job.yaml"), text) as notes:
        note = notes.submission(())
    started = events.JobStarted(1.0, "job-1", "local", "alice", find(spec.framework).expand(spec), submission=note)
    answer: dict[str, Any] = json.loads(json.dumps(serializers.job(fold([started]), {}, 2.0)))
    return answer


def copied(answers: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What the page copies of each job: as submitted, as resolved."""
    resolved = [answer["resolved"] for answer in answers]
    texts = run_node(YAML, [str(FRONTEND / "src" / "job" / "toYaml.ts")], resolved)
    return [(answer["submitted"]["yaml"], text) for answer, text in zip(answers, texts, strict=True)]


def read(text: str) -> JobSpec:
    return loads(text, "job.yaml", {}, {})[0]


def hidden(spec: JobSpec) -> Any:
    """A spec as JSON, without its secrets."""
    return serializers.mask_spec(spec)


def test_the_examples_are_copied_as_they_are() -> None:
    specs = [load(EXAMPLES / name / "job.yaml", environ={}) for name in NAMES]
    texts = copied([shown(one.spec, one.text) for one in specs])
    for one, (submitted, resolved) in zip(specs, texts, strict=True):
        assert submitted == one.text
        assert read(resolved) == find(one.spec.framework).expand(one.spec)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all examples, each with secrets in its job file, and beside it what the page copies of it."""
    base = tmp_path_factory.mktemp("secrets")
    shutil.copytree(EXAMPLES, base / "examples")
    (base / "docs").mkdir()
    (base / "docs" / "text.md").write_text("words\n")
    answers = []
    for path in (base / "examples" / name / "job.yaml" for name in NAMES):
        text = with_secrets(path.read_text())
        path.write_text(text)
        given = load(path, environ={})
        spec = dataclasses.replace(given.spec, environment=Environment())  # which takes minutes to make
        answers.append(shown(spec, text))
    for name, copies in zip(NAMES, copied(answers), strict=True):
        for kind, copy in zip(KINDS, copies, strict=True):
            (base / "examples" / name / f"{kind}.yaml").write_text(copy)
    samples = base / "examples" / "stream-formats" / "samples"
    samples.mkdir(exist_ok=True)
    for name in re.findall(r"\$\{SAMPLES\}/([\w.]+)", (samples.parent / "job.yaml").read_text()):
        (samples / name).touch()
    return base / "examples"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_with_secrets_is_planned_as_it_is_copied(
    name: str, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    for kind in KINDS:
        copy = examples / name / f"{kind}.yaml"
        assert "hunter2" not in copy.read_text()
        done = CliRunner().invoke(plan, [str(copy), "--on", "local", "--set", "environment={}"])
        assert done.exit_code == 0, done.output
        assert "env.DB_PASSWORD: *** stands for a value that was hidden" in done.output
        assert "env.RATE" not in done.output


def with_secrets(text: str) -> str:
    """An example's job file with variables and more that look secret."""
    env, _, rest = SECRETS.strip("\n").partition("\nlabels")
    if "\nenv:\n" in text:
        text = text.replace("\nenv:\n", f"\n{env}\n", 1)
        return f"{text}\nlabels{rest}\n"
    return f"{text}\n{env}\nlabels{rest}\n"


def test_secrets_are_hidden_wherever_they_stand_and_nothing_else_is_changed() -> None:
    text = ROLES + SECRETS
    spec = read(text)
    ((submitted, resolved),) = copied([shown(spec, text)])
    assert hidden(read(submitted)) == hidden(spec)
    assert read(submitted).env["MY_PASSPHRASE"] == "***"
    assert hidden(read(resolved)) == hidden(find(spec.framework).expand(spec))
    assert "hunter2" not in submitted + resolved
    assert "      python train.py --password *** --passes 3\n" in submitted
    assert "# password: ***\n" in submitted
    places = set(redaction.masked_places(hidden(read(submitted))))
    assert {"env.DB_PASSWORD", "roles.flow.command.3", "roles.worker.command"} <= places
    assert not places & {"env.RATE", "env.THEIR_TOKEN", "name"}


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20) | st.sampled_from(
    [
        "a: b",
        "- x",
        "***",
        "t --password hunter2 #x",
        "two\nlines\n",
        " led",
        "x\n\n",
        "'",
        '"',
        "{",
        "no",
        "1e3",
        "\\n",
    ]
)


@given(st.lists(st.tuples(st.sampled_from(["PASSWORD", "A_TOKEN", "LR", "passes"]), TEXTS), max_size=5), TEXTS)
@example([("PASSWORD", "x" * 200)], "a\u2028b")
def test_any_job_is_a_job_file_still(env: list[tuple[str, str]], command: str) -> None:
    spec = JobSpec({"worker": Role(f"run {command}", env=dict(env)), "list": Role(("x", command, "--token", "abc"))})
    text = to_yaml(spec)
    masked = mask_job_file(text)
    assert redaction.lines(masked).count("hunter2") == 0
    again, _ = loads(redaction.lines(masked), "job.yaml", {}, {}) if wellformed(text) else (spec, {})
    assert hidden(again) == hidden(spec)


def wellformed(text: str) -> bool:
    try:
        loads(text, "job.yaml", {}, {})
    except Exception:
        return False
    return True


def test_a_text_that_is_no_job_file_is_masked_all_the_same() -> None:
    assert "hunter2" not in mask_job_file("a: b: c\nDB_PASSWORD: hunter2\n")
    assert "hunter2" not in mask_job_file("{ x: [, DB_PASSWORD: hunter2 }\n")
