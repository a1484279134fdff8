"""Tests what `howdah data get` replaces, makes and refuses, and that nothing is begun that it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from howdah.cli.data import data


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HADOOP_CONF_DIR", "HOWDAH_HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    (tmp_path / "work/far/empty").mkdir(parents=True)
    (tmp_path / "work/far/deep").mkdir()
    for name in ("a", "deep/x", "z"):
        (tmp_path / "work/far" / name).write_text("NEW")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(data, list(arguments))
    return done.exit_code, str(done.exception) + done.output


def below(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*")}


def test_a_file_of_the_same_size_is_replaced(directory: Path) -> None:
    (directory / "here").write_text("OLD")
    assert run("get", "--overwrite", "far/a", "here")[0] == 0
    assert (directory / "here").read_text() == "NEW"


def test_a_file_goes_into_a_directory_that_is_not_there_yet(directory: Path) -> None:
    assert run("get", "far/a", "new/er/")[0] == 0
    assert run("get", "far/z", "new/er/")[0] == 0
    assert below(directory / "new") == {"er", "er/a", "er/z"}
    (directory / "here").write_text("mine")
    code, said = run("get", "--overwrite", "far/a", "here/")
    assert (code != 0, "here is no directory, and is in the way of one" in said) == (True, True)
    assert (directory / "here").read_text() == "mine"


def test_an_empty_directory_arrives(directory: Path) -> None:
    assert run("get", "far/empty", "here")[0] == 0
    assert (directory / "here").is_dir()


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize(
    ("there", "words"),
    [
        ("far/empty", "here/far/empty is no directory, and is in the way of one"),
        ("far/deep", "here/far/deep is no directory, and is in the way of one"),
        ("far/z/", "here/far/z is a directory, and is in the way of a file"),
    ],
)
def test_what_is_in_the_way_is_told_before_anything_is_fetched(
    directory: Path, overwrite: tuple[str, ...], there: str, words: str
) -> None:
    (directory / "here/far").mkdir(parents=True)
    if there.endswith("/"):
        (directory / "here" / there).mkdir()
    else:
        (directory / "here" / there).write_text("mine")
    before = below(directory / "here")
    code, said = run("get", *overwrite, "far", "here")
    assert (code != 0, words in said) == (True, True)
    assert below(directory / "here") == before


@pytest.mark.parametrize("command", ["get", "head"])
def test_a_pipe_is_no_file(directory: Path, command: str) -> None:
    os.mkfifo(directory / "pipe")
    code, said = run(command, "pipe", *(["here"] if command == "get" else []))
    assert (code != 0, "is a pipe, must be a file or directory" in said) == (True, True)
    assert not (directory / "here").exists()


@pytest.mark.parametrize("command", ["get", "put"])
def test_directories_keep_their_permission_bits(directory: Path, command: str) -> None:
    for name, mode in ((".", 0o700), ("deep", 0o750), ("empty", 0o711)):
        (directory / "far" / name).chmod(mode)
    code, said = run(command, "far", "here")
    assert code == 0, said
    for name, mode in ((".", 0o700), ("deep", 0o750), ("empty", 0o711)):
        assert (directory / "here" / name).stat().st_mode & 0o777 == mode, name
