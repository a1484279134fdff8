"""A job like an earlier one (`--like`): what was kept of that one makes the same job again."""

import socket
from pathlib import Path

import pytest

from howdah.client.kept_job import load_kept_job
from howdah.client.provenance import Provenance
from howdah.config.job_file import load
from howdah.errors import SpecError
from howdah.spec.provenance import MAX_TEXT, Submission

JOB = """\
name: digits
vars: {steps: 3, rate: 0.1}
env: {API_KEY: %s}
roles: {worker: {replicas: 2, command: "train --steps ${steps} --rate ${rate}"}}
"""


def submitted(directory: Path, sets=None, environ=None, fields=None, key="env:KEY"):
    file = directory / "job.yaml"
    file.write_text(JOB % key)
    loaded = load(file, sets, environ or {}, fields)
    with Provenance(loaded.spec, loaded.base_directory, file, loaded.text, loaded.overrides) as provenance:
        return loaded, provenance.submission([])


def again(submission, sets=None, fields=None, notices=None):
    return load_kept_job("local-1", submission, sets or {}, fields or {}, [].append if notices is None else notices)


class TestTheSameJob:
    def test_with_all_that_replaced_its_files_values(self, tmp_path):
        sets, environ = {"rate": "0.5", "roles.worker.replicas": "4"}, {"steps": "7"}
        first, submission = submitted(tmp_path, sets, environ, {"name": "night"})
        made = again(submission)
        assert made.spec == first.spec
        assert made.spec.name == "night"
        assert (made.spec.roles["worker"].command, made.spec.roles["worker"].replicas) == (
            "train --steps 7 --rate 0.5",
            4,
        )

    def test_todays_environment_changes_nothing(self, tmp_path, monkeypatch):
        first, submission = submitted(tmp_path)
        monkeypatch.setenv("steps", "99")
        assert again(submission).spec == first.spec

    def test_with_new_values_over_the_old_ones(self, tmp_path):
        _, submission = submitted(tmp_path, {"steps": "7"}, fields={"name": "night"})
        made = again(submission, {"steps": "8"}, {"name": "day"})
        assert (made.spec.name, made.spec.roles["worker"].command) == ("day", "train --steps 8 --rate 0.1")
        assert made.overrides == {"steps": "8", "--name": "day"}  # which is kept in its turn

    def test_set_comes_before_the_names_own_option(self, tmp_path):
        _, submission = submitted(tmp_path, fields={"name": "night"})
        assert again(submission, {"name": "day"}).spec.name == "day"

    def test_stars_of_the_users_own_are_no_secret(self, tmp_path):
        file = tmp_path / "job.yaml"
        file.write_text("roles: {worker: {command: 'echo \"** start **\"'}}\n")
        loaded = load(file)
        with Provenance(loaded.spec, tmp_path, file, loaded.text, loaded.overrides) as provenance:
            assert again(provenance.submission([])).spec == loaded.spec


class TestItsFiles:
    def test_are_those_of_its_directory(self, tmp_path, monkeypatch):
        _, submission = submitted(tmp_path)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        told = []
        assert again(submission, notices=told.append).base_directory == tmp_path
        assert told == [f"the job's files are taken from {tmp_path}, as they are now"]

    @pytest.mark.parametrize("change", [{"client": "another-host"}, {"directory": "/nonexistent/x"}])
    def test_are_those_here_where_it_has_none(self, tmp_path, monkeypatch, change):
        from dataclasses import replace

        _, submission = submitted(tmp_path)
        monkeypatch.chdir(tmp_path)
        told = []
        assert again(replace(submission, **change), notices=told.append).base_directory == Path.cwd()
        assert (change.get("client") or socket.gethostname()) in told[0]


class TestWhatCannotBeHadAgain:
    def test_an_earlier_version_kept_no_values_of_set(self):
        told = []
        again(Submission(text=JOB % "x"), notices=told.append)
        assert told[0] == "values that --set gave to local-1 were not kept by that version of howdah"

    def test_a_hidden_value_is_asked_for(self, tmp_path):
        _, submission = submitted(tmp_path, key="sk-12345678")
        assert "sk-12345678" not in repr(submission)
        with pytest.raises(SpecError, match=r"env\.API_KEY.*--set env\.API_KEY=VALUE"):
            again(submission)
        assert again(submission, {"env.API_KEY": "other"}).spec.env["API_KEY"] == "other"

    def test_a_hidden_override_is_asked_for(self, tmp_path):
        _, submission = submitted(tmp_path, {"env.API_KEY": "sk-12345678"})
        assert submission.overrides == {"env.API_KEY": "***"}
        with pytest.raises(SpecError, match=r"env\.API_KEY"):
            again(submission)

    @pytest.mark.parametrize("command", ["train --token abcd1234", 'curl -H "Authorization: Bearer abcd1234" host'])
    def test_a_hidden_part_of_an_override_is_asked_for(self, tmp_path, command):
        place = "roles.worker.command"
        _, submission = submitted(tmp_path, {place: command})
        assert "abcd1234" not in repr(submission)
        with pytest.raises(SpecError, match=rf"was hidden .*: give it with --set {place}=VALUE"):
            again(submission)
        assert again(submission, {place: "train '***'"}).spec.roles["worker"].command == "train '***'"

    @pytest.mark.parametrize("text", ["", "x" * (MAX_TEXT + 10)])
    def test_a_job_file_that_was_not_kept_whole(self, text):
        with pytest.raises(SpecError, match="kept"):
            again(Submission(text=text))
