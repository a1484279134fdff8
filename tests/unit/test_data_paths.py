"""Tests which paths `howdah data` takes: what a script's mistake names is not removed, and not replaced unasked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from howdah.cli.data import data
from howdah.client.clusters import engine_of
from howdah.errors import JobNotFound


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HADOOP_CONF_DIR", "HOWDAH_HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home/work/sub").mkdir(parents=True)
    (tmp_path / "home/work/file").write_text("mine")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    monkeypatch.chdir(tmp_path / "home/work")
    return tmp_path / "home/work"


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(data, list(arguments))
    return done.exit_code, str(done.exception) + done.output


@pytest.mark.parametrize("path", ["", ".", "..", "./", "sub/..", "../..", "$HERE", "file://$HERE", "link"])
def test_home_and_current_directory_are_not_removed(directory: Path, path: str) -> None:
    (directory / "link").symlink_to("..")
    code, said = run("rm", "-r", path.replace("$HERE", str(directory)))
    assert code != 0
    assert "is empty" in said or "is, or holds, your home or the current directory" in said
    assert (directory / "file").read_text() == "mine"


def test_nor_by_the_name_of_a_mount(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = f"<name>fs.viewfs.mounttable.c.link./people</name><value>{directory.parent.as_uri()}</value>"
    (tmp_path / "core-site.xml").write_text(f"<configuration><property>{link}</property></configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for path in ("viewfs://c/people/work", "viewfs://c/people/w*"):
        code, said = run("rm", "-r", path)
        assert (code != 0, "is, or holds, your home or the current directory" in said) == (True, True), said
    assert (directory / "file").read_text() == "mine"
    assert run("rm", "-r", "viewfs://c/people/work/sub")[0] == 0


def test_what_is_named_is_removed(directory: Path) -> None:
    assert run("rm", "-r", "sub")[0] == run("rm", "file")[0] == 0
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("put", "", "x"), ("put", "file", ""), ("get", ""), ("get", "file", ""), ("ls", "")]
)
def test_an_empty_path_is_no_directory(directory: Path, arguments: tuple[str, ...]) -> None:
    code, said = run(*arguments)
    assert (code, "it is empty" in said) == (2, True)


def test_nothing_is_replaced_unasked(directory: Path) -> None:
    (directory / "far").mkdir()
    (directory / "far/file").write_text("theirs")
    for arguments in (("get", "far/file", "."), ("put", "file", "far"), ("put", "file", "far/")):
        assert "exists already (1 of 1 do); allow it with --overwrite" in run(*arguments)[1]
    assert ((directory / "file").read_text(), (directory / "far/file").read_text()) == ("mine", "theirs")
    assert run("put", "--overwrite", "file", "far")[0] == 0
    assert (directory / "far/file").read_text() == "mine"
    assert run("put", "file", "new/")[0] == 0
    assert (directory / "new/file").read_text() == "mine"


@pytest.mark.parametrize("job_id", ["", " ", ".", ".."])
def test_an_empty_id_is_no_jobs(job_id: str) -> None:
    with pytest.raises(JobNotFound):
        engine_of(job_id)
