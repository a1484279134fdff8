"""Tests that `howdah data rm` removes what was named, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from howdah.cli import cli


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    for name in ("a.txt", "b.txt", "c.csv", "d/e", "f/g"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    return tmp_path


def rm(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["data", "rm", *arguments])


def left(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - {"home"}


def test_a_file_a_pattern_a_directory(directory: Path) -> None:
    assert rm("a.txt").exit_code == 0
    assert left(directory) == {"b.txt", "c.csv", "d", "f", "link"}
    assert rm("*.txt").exit_code == 0
    assert left(directory) == {"c.csv", "d", "f", "link"}
    assert rm("-r", (directory / "d").as_uri()).exit_code == 0
    assert left(directory) == {"c.csv", "f", "link"}
    assert rm("-r", "link").exit_code == 0
    assert left(directory) == {"c.csv", "f"}
    assert (directory / "f" / "g").exists()


def test_a_link_to_nothing(directory: Path) -> None:
    (directory / "gone").symlink_to("nowhere")
    assert rm("gone").exit_code == 0
    assert left(directory) == {"a.txt", "b.txt", "c.csv", "d", "f", "link"}
    (directory / "d.txt").symlink_to("nowhere")
    (directory / "d.csv").symlink_to("nowhere")
    assert rm("{b,d}.txt").exit_code == 0
    assert left(directory) == {"a.txt", "c.csv", "d", "d.csv", "f", "link"}
    assert rm("d.*").exit_code == 0
    assert left(directory) == {"a.txt", "c.csv", "d", "f", "link"}


def test_a_pattern_that_matches_nothing_is_told(directory: Path) -> None:
    (directory / "d{1}").write_text("x")
    listed = CliRunner().invoke(cli, ["data", "ls", "d{1}*"])  # braces of a pattern hold words to choose from
    assert listed.exit_code != 0
    assert str(listed.exception) == "d{1}*: nothing matches", "as it was typed"
    assert CliRunner().invoke(cli, ["data", "ls", "d?1?*"]).stdout.split()[-1].endswith("/d%7B1%7D")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("d", "is a directory: remove it with all below it by --recursive"),
        ("*", "is a directory"),
        ("nothing", "no such file or directory"),
        ("*.nothing", "nothing matches"),
        ("/", "the root of a file system is not removed"),
        ("file:///", "the root of a file system is not removed"),
    ],
)
def test_what_is_not_removed(directory: Path, path: str, words: str) -> None:
    before = left(directory)
    done = rm(*(["-r"] if path.endswith("/") else []), path)
    assert done.exit_code != 0
    assert words in str(done.exception)
    assert left(directory) == before


def test_a_name_with_the_letters_of_a_pattern_is_itself(directory: Path) -> None:
    for name in ("a[1]", "a1"):
        (directory / name).write_text(name)
    listed = CliRunner().invoke(cli, ["data", "ls", "--json", "a[1]"])
    assert (json.loads(listed.stdout)["size"], rm("a[1]").exit_code) == (4, 0)
    assert ((directory / "a1").exists(), (directory / "a[1]").exists()) == (True, False)
    assert rm("a[1]").exit_code == 0
    assert not (directory / "a1").exists()
