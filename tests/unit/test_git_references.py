"""Tests that an environment is another one when a branch that its requirements name has got another commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from howdah.client.submit import packed_environment
from howdah.config.settings import Settings
from howdah.engines import Engine
from howdah.staging import git_references
from howdah.staging.git_references import GitReference, commits_of, find_references, without_answer
from howdah.staging.virtual_environments import ensure_environment, environment_key, environment_path

COMMIT = "0123456789" * 4


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(git_references, "KEPT_S", -1.0)  # each question is asked


def git(repository: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, "-C", str(repository), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def push(repository: Path) -> str:
    git(repository, "commit", "--allow-empty", "-q", "-m", "x")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "mylib"
    path.mkdir()
    git(path, "init", "-q")
    push(path)
    return path


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("git+https://host/mylib@main", "https://host/mylib", "main"),
        ("git+https://host/mylib", "https://host/mylib", "HEAD"),
        ("git+ssh://git@host/a/mylib.git@v1#egg=mylib", "ssh://git@host/a/mylib.git", "v1"),
        ("git+https://me:pw@host/mylib@f/x", "https://me:pw@host/mylib", "f/x"),
        ('dependencies = ["mylib @ git+https://host/mylib@main", "six"]', "https://host/mylib", "main"),
        ('mylib = { git = "https://host/mylib", branch = "dev" }', "https://host/mylib", "dev"),
        (
            '[tool.uv.sources.mylib]\ngit = "https://host/mylib"\nbranch = "dev"\n\n[tool.x]\ntag = "no"\n',
            "https://host/mylib",
            "dev",
        ),
        ('[tool.uv.sources.mylib]\nrev = "v2"\ngit = "https://host/mylib"\n', "https://host/mylib", "v2"),
    ],
)
def test_what_a_requirement_names(text: str, url: str, name: str) -> None:
    assert list(find_references(text)) == [GitReference(url, name)]


@pytest.mark.parametrize(
    "text", [f"git+https://host/mylib@{COMMIT}", "hg+https://host/mylib@x", "# git+https://h/x", "six"]
)
def test_what_stays_as_it_is(text: str) -> None:
    assert list(find_references(text)) == []


def test_no_password_is_shown() -> None:
    assert GitReference("https://me:pw@host/x", "main").shown == "https://host/x@main"
    assert GitReference("https://me:p@w@host/x", "main").shown == "https://host/x@main"


@pytest.mark.parametrize("line", ["mylib @ git+{uri}@main", "-e git+{uri}@main#egg=mylib", "git+{uri}", "git+{uri}@v1"])
def test_a_push_makes_another_environment(tmp_path: Path, repository: Path, line: str) -> None:
    git(repository, "tag", "v1")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(line.format(uri=repository.as_uri()) + "\n")
    before, key = environment_path(requirements), environment_key(requirements)
    assert environment_path(requirements) == before
    push(repository)
    git(repository, "tag", "-f", "v1")
    assert environment_path(requirements) != before
    assert environment_key(requirements) != key


def test_a_branch_is_not_taken_for_another_one_that_ends_alike(repository: Path) -> None:
    first = push(repository)
    git(repository, "branch", "feature/main")
    later = push(repository)
    reference = GitReference(repository.as_uri(), "main")
    assert commits_of([reference]) == {reference: later}
    assert first != later


def test_without_an_answer_the_last_one_counts_and_is_told(tmp_path: Path, repository: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"mylib @ git+{repository.as_uri()}@main\n")
    before = environment_path(requirements)
    before.mkdir(parents=True)
    repository.rename(tmp_path / "gone")
    said: list[str] = []
    assert ensure_environment(requirements, said.append) == before
    assert said == [
        f"which commit {repository.as_uri()}@main is now can't be found out, so the environment may have an older one"
    ]


def test_a_shortened_commit_is_one(repository: Path) -> None:
    reference = GitReference(repository.as_uri(), COMMIT[:8])
    assert commits_of([reference]) == {reference: COMMIT[:8]}
    unknown = GitReference(repository.as_uri(), "nobranch")
    assert without_answer([reference, unknown]) == [unknown]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git of the test's own."""
    path = tmp_path / "bin" / "git"
    path.parent.mkdir()
    path.touch(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def test_a_server_may_not_ask_and_no_password_is_an_argument(tmp_path: Path, program: Path) -> None:
    program.write_text(f'#!/bin/sh\nenv > {tmp_path}/variables\necho "$@" > {tmp_path}/arguments\nexit 1\n')
    reference = GitReference("https://me:pw@host/x", "main")
    assert without_answer([reference]) == [reference]
    assert "GIT_TERMINAL_PROMPT=0" in (tmp_path / "variables").read_text().splitlines()
    assert (tmp_path / "arguments").read_text() == "ls-remote -- howdah main\n"


def test_a_server_is_not_waited_for_longer(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program.write_text("#!/bin/sh\nsleep 600\n")
    monkeypatch.setattr(git_references, "LIMIT_S", 0.0)
    reference = GitReference("https://host/x", "main")
    assert without_answer([reference]) == [reference]


def test_the_age_of_a_packed_environment_is_told(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("six\nx @ hg+https://host/x\n")

    class Home:
        home = (tmp_path / "cluster").as_uri()

    engine: Engine = Home()  # type: ignore[assignment]
    settings = Settings({"hadoop_conf_dir": ""}, {}, "")
    key = environment_key(requirements)
    packed = tmp_path / "cluster/cache" / key[:2] / f"{key}-environment.tar.gz"
    packed.parent.mkdir(parents=True)
    packed.touch()
    old = packed.stat().st_mtime - 10 * 86400
    os.utime(packed, (old, old))
    said: list[str] = []
    file = packed_environment(requirements, engine, settings, said.append)
    assert (file.uri, said) == (
        packed.as_uri(),
        [
            "the environment is 10 days old, and six, x @ hg+https://host/x may be newer: a new comment in"
            " requirements.txt makes howdah install it again"
        ],
    )
