"""Tests working files of single roles: which files a container has, and their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.spec import JobSpec, Role
from howdah.spec.codec import decode, encode
from howdah.spec.staged import StagedJob
from howdah.spec.uris import of_local
from howdah.spec.validation import find_mistakes
from howdah.staging.files_wrong import FilesWrong
from howdah.staging.stage import stage


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed directories are kept there."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path_factory.mktemp("home")))


def job(worker: tuple[str, ...], ps: tuple[str, ...], *everywhere: str) -> JobSpec:
    return JobSpec({"worker": Role("w", files=worker), "ps": Role("p", files=ps)}, files=everywhere)


def test_two_roles_may_have_files_of_one_name(tmp_path: Path) -> None:
    for name in ("a", "b", "both"):
        (tmp_path / name).write_text(name)
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "x").write_text("x")
    spec = job(("a#conf", "directory#."), ("b#conf",), "both")
    assert find_mistakes(spec) == []
    staged = stage(spec, tmp_path, of_local(tmp_path / "home"))
    again = decode(StagedJob, encode(staged))
    found = {
        role: {file.name: (file.kind, Path(file.source).name) for file in again.files_of(role)} for role in spec.roles
    }
    spread, archive = found["worker"].pop("howdah-roles-worker-files-1")
    assert (spread, archive.endswith(".tar.gz")) == ("spread", True)
    assert found == {
        "worker": {"both": ("file", "both"), "conf": ("file", "a")},
        "ps": {"both": ("file", "both"), "conf": ("file", "b")},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            job(("a#x", "b#x"), ()),
            "roles.worker.files.1: would be 'x' in the working directory, as roles.worker.files.0",
        ),
        (job(("a#x",), (), "b#x"), "roles.worker.files.0: would be 'x' in the working directory, as files.0 is"),
        (job(("a#b/c",), ()), "roles.worker.files.0: is 'a#b/c', must be a path, or path#name with a plain name"),
    ],
)
def test_names_that_clash_are_told(spec: JobSpec, expected: str) -> None:
    (mistake,) = find_mistakes(spec)
    assert str(mistake).startswith(expected)


def test_what_is_missing_is_named_by_its_role(tmp_path: Path) -> None:
    with pytest.raises(FilesWrong, match=r"roles\.ps\.files\.0: 'none': no such file"):
        stage(job((), ("none",)), tmp_path, of_local(tmp_path / "home"))
