"""Tests that notebooks and shells send along the files that their user names, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from howdah.cli.job_arguments import CommandWithProgram, options_without_file
from howdah.errors import SpecError
from howdah.interactive.held_job import prepare_held_job, stored_home
from howdah.interactive.notebook import _LAB


def sent_along(command: tuple[str, ...], *arguments: str) -> list[str]:
    """Return the names of the files of a job that holds `command`, started with these arguments."""
    found: list[str] = []

    @click.command(cls=CommandWithProgram)
    @options_without_file
    def start(**options: Any) -> None:
        options["name"] = "held"
        prepared = prepare_held_job(3600.0, command, "", options)
        found.extend(file.name for file in prepared.plan.job.files)

    CliRunner().invoke(start, ["--on", "local", *arguments], catch_exceptions=False)
    return found


def test_what_is_sent_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOWDAH_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    here = tmp_path / "here"
    for name in ("home", "lab", "python3"):
        (here / name).mkdir(parents=True)
    (here / "hold.py").write_text("import beside\n")
    (here / "app.py").write_text("import beside\n")
    (here / "beside.py").touch()
    monkeypatch.chdir(here)
    assert sent_along(_LAB) == ["hold.py"]
    assert sent_along(()) == ["hold.py"]
    assert sorted(sent_along(("streamlit", "run", "app.py"), "--", "streamlit", "run", "app.py")) == [
        *("app.py", "beside.py", "hold.py"),
    ]


def test_where_a_home_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOWDAH_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    assert stored_home("work", "local", "") == str(tmp_path / "HOME" / "howdah-homes" / "work")
    for name in (".", ".."):  # there are the homes of all other notebooks
        with pytest.raises(SpecError, match=f"--home: is '{name}', must be a name, or a path with a slash"):
            stored_home(name, "local", "")
