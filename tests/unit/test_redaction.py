"""Tests that values which look like secrets are masked, and those which only sound like them are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from howdah.api import serializers
from howdah.cli.run import plan
from howdah.cli.terminal import Json
from howdah.client.follow import Update
from howdah.spec import JobReport, JobSpec, Role, State, event_lines, events, redaction
from howdah.spec.codec import encode
from howdah.spec.fold import fold
from howdah.spec.provenance import Submission

SECRET = """
    PASSWORD DB_PASSWD apiKey fs.s3a.secret.key HF_TOKEN AWSSecretKey DB_PASS dbPass OPENAI_KEY openai-key AUTH
    --http-auth MY_TOKEN_2 password1 S3_KEY AZURE_STORAGE_ACCOUNT_KEY private_key Authorization PGPASSWORD DB_PW
    PGPASS SECRETS GOOGLE_APPLICATION_CREDENTIALS"""
OPEN = """
    KEY MAX_TOKENS tokenizer MONKEY PYTHONPATH key_dim public_key --num-keys --key-column --passes --num-pass
    first_pass 2pass bypass compass author --authors authority AUTH_MODE --use-auth --pad-token pad_token_id token_type
    SORT_KEY --image-key keys PASSWORD_FILE hadoop.security.credential.provider.path"""


@pytest.mark.parametrize("name", SECRET.split())
def test_names_that_look_secret(name: str) -> None:
    assert redaction.looks_secret(name)


@pytest.mark.parametrize("name", OPEN.split())
def test_names_that_do_not(name: str) -> None:
    assert not redaction.looks_secret(name)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": ["abc", 5]}, {"password": ["***", "***"]}),
        ({"token": 12345, "passwd": None, "pw": ""}, {"token": "***", "passwd": None, "pw": ""}),
        ({"secrets": {"A_TOKEN": "env:A", "B": "x"}}, {"secrets": {"A_TOKEN": "env:A", "B": "x"}}),
        ({"TOKEN": "${A}", "PASSWORD": "${A}hunter2"}, {"TOKEN": "${A}", "PASSWORD": "***"}),
        ({"words": ["--token", "abc"], "passes": 3}, {"words": ["--token", "***"], "passes": 3}),
    ],
)
def test_a_record_without_secrets(value: dict[str, Any], shown: dict[str, Any]) -> None:
    assert redaction.record(value) == shown


def test_many_references_take_no_time() -> None:
    said = "TOKEN=${A} " * 20_000
    assert redaction.text(said) == said
    assert redaction.text("TOKEN=${" * 4_000) == "TOKEN=***"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["x", "--db-password", "a", "b"], ["x", "--db-password", "***", "b"]),
        (["--api-key=abc", "--set", "TOKEN=abc", "lr=1"], ["--api-key=***", "--set", "TOKEN=***", "lr=1"]),
        (["http://me:pw@host/x", "the-key"], ["http://***@host/x", "***"]),
        (["--max-tokens", "5", "--tokenizer=bert", "a:b@c"], ["--max-tokens", "5", "--tokenizer=bert", "a:b@c"]),
        (
            ["--set", "roles.worker.command=python t.py --password=hunter2 --lr 1"],
            ["--set", "roles.worker.command=python t.py --password=*** --lr 1"],
        ),
        (["--launch-cmd", "python t.py --pass hunter2"], ["--launch-cmd", "python t.py --pass ***"]),
        (["--token", "$TOKEN", "--passes", "3"], ["--token", "$TOKEN", "--passes", "3"]),
    ],
)
def test_a_command_line_without_secrets(command: list[str], shown: list[str]) -> None:
    assert redaction.words(command, ["the-key"]) == shown
    assert redaction.words(redaction.words(command, ["the-key"])) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("python t.py --password hunter2 --lr 1", "python t.py --password *** --lr 1"),
        ("DB_PASS='hunter two' python t.py; true", "DB_PASS=*** python t.py; true"),
        ('bash -c "t --password=hunter2" || echo', 'bash -c "t --password=***" || echo'),
        ('t --conf \'{"password": "hunter2"}\'', "t --conf '{\"password\": ***'"),
        ('t --conf "{\\"password\\": \\"hunter2\\"}"', 't --conf "{\\"password\\": ***"'),
        ("t --password \\\n  hunter2 --x", "t --password \\\n  *** --x"),
        ("t --password='hunter2", "t --password=***"),
        ("t --password '$hunter2' x", "t --password *** x"),
        ("t --password=hun'ter'2 x", "t --password=*** x"),
        ("curl -H 'X: Bearer hunter2' host", "curl -H 'X: Bearer ***' host"),
        ("http://host:1/#token=ab12&act=act.179.48", "http://host:1/#token=***&act=***"),
        ("get https://host/?token=hunter2&n=1", "get https://host/?token=***&n=1"),
    ],
)
def test_a_shell_line_without_secrets(said: str, shown: str) -> None:
    assert redaction.text(said) == shown
    assert "hunter2" not in redaction.text(said)


@pytest.mark.parametrize(
    "said",
    [
        "train.py --num-keys 5 --key-column id --passes 3 --author me --monkey=1 --keys a,b",
        "t --token $TOKEN --db-pass ${DB_PASS} --password-file /run/secrets/db",
        "for token in a b; do python -m author.keys --max-tokens 7 < passes.txt; done",
        "tokenize --pad-token x --use-auth --lr 3",
    ],
)
def test_what_tells_nothing_stays(said: str) -> None:
    assert redaction.text(said) == redaction.lines(said) == said


def test_a_list_of_a_job_file() -> None:
    said = "command:\n  - t\n  - --password\n  - hunter2\n  - --lr\nauthor: me\nenv: {DB_PASS: hunter2}\n"
    shown = redaction.lines(said)
    assert "hunter2" not in shown
    assert "- --lr\nauthor: me\n" in shown


def test_whoever_looks_at_a_job_sees_no_secret() -> None:
    roles = {
        "a": Role("train --password hunter2 --passes 3", env={"LR": "1", "DB_PASS": "hunter2"}),
        "b": Role(("train", "--password", "hunter2", "--num-keys", "5")),
    }
    note = Submission(text="command: t --pass hunter2\n", command=("howdah", "--set", "c=t --pass hunter2"))
    started = events.JobStarted(1.0, "job-1", "local", "alice", JobSpec(roles=roles), submission=note)
    view = fold([started])
    record = serializers.masked_record({"kind": "JobStarted", **encode(started)})
    for shown in (record, serializers.job(view, {}, 2.0)):
        assert "hunter2" not in str(shown)
    spec = serializers.mask_spec(JobSpec(roles=roles))
    assert spec["roles"]["a"]["command"] == "train --password *** --passes 3"
    assert spec["roles"]["b"]["command"] == ["train", "--password", "***", "--num-keys", "5"]
    assert event_lines.from_record(record) is not None
    assert view.job is not None
    assert view.job.roles == roles


def test_nothing_else_of_a_spec_is_changed() -> None:
    spec = JobSpec(roles={"token": Role("train", replicas=3)}, secrets={"TOKEN": "env:TOKEN"}, labels={"team": "a"})
    assert serializers.mask_spec(spec) == encode(spec)


def test_what_the_command_line_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    job = JobSpec(roles={"a": Role("train --password hunter2")})
    started = events.JobStarted(1.0, "job-1", "local", "alice", job)
    Json().show(Update(fold([started]), JobReport("job-1", "", State.RUNNING, "local"), [started]))
    shown = json.loads(capsys.readouterr().out)
    assert shown["job"]["roles"]["a"]["command"] == "train --password ***"
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    file = tmp_path / "job.yaml"
    file.write_text("roles: {a: {command: train --password hunter2 --passes 3}}\n")
    for more in ([], ["--json"]):
        done = CliRunner().invoke(plan, [str(file), "--on", "local", *more])
        assert done.exit_code == 0, done.output
        assert "hunter2" not in done.output
        assert "--password *** --passes 3" in done.output
