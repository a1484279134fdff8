"""Tests what the command line says to the habits of other launchers: their commands and options, and `help`."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.cli import COMMANDS, MEANT, main


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 64) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert (end.value.code or 0) == status
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize(
    ("arguments", "same"), [(("help",), ("--help",)), (("help", "data", "ls"), ("data", "ls", "--help"))]
)
def test_help_is_a_command(
    arguments: tuple[str, ...], same: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, *arguments, status=0) == said(capsys, *same, status=0) != ""


@pytest.mark.parametrize(
    ("word", "meant"), [("launch", "run"), ("apply", "submit"), ("down", "cancel"), ("queue", "list")]
)
def test_other_commands_name_the_one_here(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"No command '{word}'. Did you mean {meant}?" in said(capsys, word)


def test_what_is_meant_is_there() -> None:
    assert set(MEANT.values()) <= set(COMMANDS)
    assert not set(MEANT) & set(COMMANDS)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--num-nodes", "Did you mean '--replicas'?"),
        ("--cpus", "Did you mean '--vcores'?"),
        ("--workdir", "Did you mean '--file'?"),
        ("--detach", "`howdah submit` does not wait for the job's end"),
        ("--wait", "`howdah run JOB_FILE` follows the job to its end without an option"),
    ],
)
def test_other_options_name_the_one_here(option: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hint in said(capsys, "run", option, "2", "--", "hostname")


def test_a_program_after_the_dashes_is_no_job_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    assert "is a program, no job file" not in said(capsys, "run", "--num-nodes", "2", "--", "python", "train.py")
    assert "is a program, no job file" in said(capsys, "run", "--num-nodes", "2", "train.py")


def test_config_list_shows_what_config_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    assert said(capsys, "config", "list", status=0) == said(capsys, "config", status=0) != ""
    assert said(capsys, "config", "list", "--json", status=0) == said(capsys, "config", "--json", status=0)
