"""Tests that the paths of Submarine's commands are one word each, and that no two jobs write to one default path."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.compat import Parsed
from howdah.compat.submarine import commands, placeholders
from howdah.compat.submarine.job_run import Submarine
from howdah.compat.submarine.options import parse_options
from howdah.errors import SpecError
from howdah.spec import JobReport, JobSpec, StagedJob, State, uris
from howdah.spec.codec import encode

ODD = [
    "my dir",
    "a;echo INJ",
    "it's",
    'say "x"',
    "$HOME",
    "`id`",
    "a\nb",
    "*",
    "\\",
    "&& false",
    "%input_path%",
    "-n #",
]
LINES = {
    "--ck=%checkpoint_path%": "--ck={}",
    "'--ck=%checkpoint_path%'": "--ck={}",
    '"--ck=%checkpoint_path%x"': "--ck={}x",
    '\\"%checkpoint_path%\\"': '"{}"',
    "\"'%checkpoint_path%'\"": "'{}'",
    "'\\'%checkpoint_path%": "\\{}",
    "'a#'%checkpoint_path%": "a#{}",
}


def run(line: str) -> str:
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.removesuffix("\0")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("value", ODD)
def test_a_value_is_one_word_in_whatever_quotes(line: str, value: str) -> None:
    filled = placeholders.fill_in(f"printf '%s\\0' {line}", lambda _: value, as_text=False)
    assert run(filled) == LINES[line].format(value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('d="$(echo \'%input_path%\')"; printf "%s\\0" "$d"', "a b"),
        ("cat <<E\n%input_path%\nE", "a b\n"),
        ('bash -c \'printf "%s\\0" "%input_path%"\'', "a b"),
    ],
)
def test_what_reads_a_command_anew_gets_text(tmp_path: Path, line: str, said: str) -> None:
    parsed = parse(tmp_path, "--name", "a", "--input_path", "a b", command=line)
    assert run(str(parsed.job.roles["master"].command)) == said
    assert not any("one word" in note for note in parsed.notes)


def test_a_comment_quotes_nothing() -> None:
    filled = placeholders.fill_in("# don't\nprintf '%s\\0' %input_path%", lambda _: "a b", as_text=False)
    assert run(filled) == "a b"


def parse(directory: Path, *words: str, command: str = "w.py %input_path% %checkpoint_path%") -> Parsed:
    fixed = ("--worker_resources", "memory=100M", "--worker_launch_cmd", command)
    return Submarine(directory, {}, "/nonexistent", "hdfs://nn/user/me").parse(["job", "run", *fixed, *words])


def test_a_plain_value_stands_in_the_command(tmp_path: Path) -> None:
    parsed = parse(tmp_path, "--name", "训练-1", "--input_path", "hdfs://nn:8020/a=1,2")
    made = "hdfs://nn/user/me/submarine/jobs/训练-1/staging/checkpoint_path"
    assert parsed.job.roles["master"].command == f"w.py hdfs://nn:8020/a=1,2 {made}"
    assert not parsed.notes


def test_a_value_that_a_shell_would_split_is_told(tmp_path: Path) -> None:
    words = ("--name", "a", "--input_path", "my dir", "--checkpoint_path", "ck")
    parsed = parse(tmp_path, *words)
    assert parsed.job.roles["master"].command == "SUBMARINE_INPUT_PATH='my dir'\nw.py \"$SUBMARINE_INPUT_PATH\" ck"
    assert parsed.notes == (
        "--input_path: 'my dir' is one word; to Submarine it was text of the command, as it is with --legacy",
    )
    parsed = parse(tmp_path, *words, "--legacy")
    assert parsed.job.roles["master"].command == "w.py my dir ck"


def test_the_default_path_is_one_directory_below_that_of_all_jobs() -> None:
    names = ["My Job", "My_Job", "../../../esc", "..", "a/b", "a;echo", ".", "x" * 200, "训" * 200, "\ud800", "a\n"]
    paths = [placeholders.default_checkpoint_path(name) for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        before, _, after = path.partition("submarine/jobs/")
        name = after.removesuffix("/staging/checkpoint_path")
        assert not before
        assert "/" not in name
        assert name not in ("", ".", "..")
        assert len(os.fsencode(name)) <= 255
        assert placeholders.is_plain(path)
    assert paths[1] == "submarine/jobs/My_Job/staging/checkpoint_path"


@pytest.mark.parametrize(
    ("words", "uses"),
    [
        (["--worker_launch_cmd", "x %checkpoint_path%"], True),
        (["--worker_launch_cmd", "x %saved_model_path%"], True),
        (["--worker_launch_cmd", "x %input_path%"], False),
        (["--worker_launch_cmd", "x %saved_model_path%", "--saved_model_path", "m"], False),
        (["--worker_launch_cmd", "x %checkpoint_path% %saved_model_path%", "--checkpoint_path", "c"], False),
    ],
)
def test_who_writes_to_the_default_path(words: list[str], uses: bool) -> None:
    assert placeholders.uses_default_checkpoint_path(parse_options(words)) is uses


class TestASecondJobOfOneName:
    DEFAULT = "/home/me/submarine/jobs/same/staging/checkpoint_path"
    REFUSED = "--name: is 'same', and local_1-1 of that name may write"
    JOB = JobSpec({}, name="same", links={"Checkpoint Path": DEFAULT, "Saved Model Path": DEFAULT})

    def report(self, directory: Path, state: State = State.RUNNING, name: str = "same", **paths: str) -> JobReport:
        """A job whose paths are these; without any it is one that can't be read."""
        if paths:
            links = {f"{label.replace('_', ' ').title()} Path": path for label, path in paths.items()}
            staged = StagedJob(JobSpec({}, name=name, links=links), "file:///h")
            (directory / "job.json").write_text(json.dumps(encode(staged)))
        return JobReport("local_1-1", name, state, "local", directory=uris.of_local(directory))

    @pytest.mark.parametrize(
        "paths",
        [
            {"checkpoint": DEFAULT, "saved_model": "/m"},
            {"checkpoint": "/c", "saved_model": f"{DEFAULT}/"},
            {},
        ],
    )
    def test_is_refused_the_default_path_that_the_first_may_have(self, tmp_path: Path, paths: dict[str, str]) -> None:
        with pytest.raises(SpecError, match=self.REFUSED):
            commands._check_checkpoint_is_free([self.report(tmp_path, State.PENDING, **paths)], self.JOB)

    def test_is_told_from_a_path_of_the_cluster_without_its_name(self, tmp_path: Path) -> None:
        job = replace(self.JOB, links={"Checkpoint Path": f"hdfs://nn:8020{self.DEFAULT}"})
        with pytest.raises(SpecError, match=self.REFUSED):
            commands._check_checkpoint_is_free([self.report(tmp_path, checkpoint=self.DEFAULT)], job)

    def test_has_the_default_path_where_no_other_may_write_there(self, tmp_path: Path) -> None:
        commands._check_checkpoint_is_free([self.report(tmp_path, checkpoint="/c", saved_model="/m")], self.JOB)
        ended, other = self.report(tmp_path, State.FAILED), self.report(tmp_path, name="other")
        commands._check_checkpoint_is_free([ended, other], self.JOB)
