"""Tests how the bootstrap becomes the executor: in its own process if it sees the executor's modules, else by exec."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

import howdah
from howdah.executor import bootstrap
from howdah.executor.bootstrap import Bootstrap, OwnExecutor
from howdah.spec.staged import RUNTIME, StagedFile
from howdah.staging.bootstrap_archive import bootstrap_archive
from howdah.wire.launch_messages import CONTAINER, KEY_FILE, MASTER, LaunchOrder, bootstrap_command

_PLAY = """
import os, sys
from pathlib import Path
import howdah
from howdah.executor.bootstrap import Bootstrap, become_executor
from howdah.spec.staged import MODULES, RUNTIME, StagedFile
from howdah.wire.launch_messages import LaunchOrder, executor_command, seal

directory, command = Path(sys.argv[1]), sys.argv[2]
modules = directory / "cache" / "unpacked" / "r.zip" / MODULES
modules.mkdir(parents=True)
(directory / "cache" / "aa").mkdir()
(directory / "cache" / "aa" / "r.zip").touch()
sys.path.insert(0, str(modules))
runtime = StagedFile(RUNTIME, (directory / "cache" / "aa" / "r.zip").as_uri(), "archive")
key = bytes(32)
other = ("/bin/sh", "-c", "echo other executor $$ $HOWDAH_TASK $HOWDAH_HOST; exit 3")
order = LaunchOrder(
    task="worker:0",
    attempt=1,
    command=executor_command("python") if command == "same" else other,
    environment={"HOWDAH_TASK": "worker:0"},
    sealed=seal(key, b"secret").hex(),
    runtime=(runtime,),
)
os.environ.update({"HOWDAH_CONTAINER_KEY_FILE": "/key", "HOWDAH_FACT_NODE": "n"})

bootstrap = Bootstrap("http://m:1", "c", key, "here", directory / "container", directory / "cache")
print("bootstrap", os.getpid(), flush=True)
become_executor(bootstrap, order, dict(os.environ), "python")
private = [name for name in os.environ if "KEY_FILE" in name or "FACT" in name]
secret = Path(os.environ["HOWDAH_CREDENTIALS"]).read_text()
print("own executor", os.getpid(), os.environ["HOWDAH_TASK"], os.environ["HOWDAH_HOST"], private, secret)
sys.exit(7)
"""


def play(directory: Path, command: str) -> tuple[int, list[list[str]]]:
    done = subprocess.run(
        [sys.executable, "-c", _PLAY, str(directory), command], stdout=subprocess.PIPE, text=True, timeout=60
    )
    return done.returncode, [line.split(" ") for line in done.stdout.splitlines()]


def test_the_executor_runs_in_the_process_of_a_bootstrap_that_sees_its_modules(tmp_path: Path) -> None:
    status, ((_, before), (own, _, pid, task, host, private, secret)) = play(tmp_path, "same")
    assert (status, own, pid, task, host) == (7, "own", before, "worker:0", "here")
    assert (private, secret) == ("[]", "secret")


def test_another_command_takes_the_place_of_the_bootstrap(tmp_path: Path) -> None:
    status, ((_, before), (other, _, pid, task, host)) = play(tmp_path, "other")
    assert (status, other, pid, task, host) == (3, "other", before, "worker:0", "here")


def test_a_bootstrap_without_a_master_says_so_by_its_own_modules() -> None:
    modules = str(Path(howdah.__file__).parents[1])
    done = subprocess.run(bootstrap_command(sys.executable, modules), stderr=subprocess.PIPE, text=True, env={})
    assert done.returncode == 78
    assert "this container cannot begin: KeyError: 'HOWDAH_MASTER'" in done.stderr


def test_modules_that_are_gone_are_told() -> None:
    python = os.path.realpath(sys.executable)  # outside the virtual environment, where howdah is
    done = subprocess.run(bootstrap_command(python, "/gone"), stderr=subprocess.PIPE, text=True, env={}, cwd="/")
    assert done.stderr == "howdah is not in /gone\n"
    assert done.returncode == 78


def test_the_archive_has_what_is_loaded_later() -> None:
    later = "howdah.executor.job_downloads", "howdah.wire.connection", "howdah.staging.archive_extraction"
    with tempfile.NamedTemporaryFile(suffix=".pyz") as archive:
        archive.write(bootstrap_archive())
        archive.flush()
        play = f"import sys; sys.path.insert(0, {archive.name!r}); import {', '.join(later)}"
        subprocess.run([sys.executable, "-I", "-S", "-c", play], check=True)


def test_nobody_else_can_prepare_what_a_container_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's directory may be in /tmp, where all users of the node can make directories."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("VERSION", "downloaded")
    monkeypatch.setattr(Bootstrap, "_download_runtime", lambda _: content.getvalue())
    uri = "hdfs://nameservice/cache/aa/howdah-1.zip"
    planted = tmp_path / "unpacked" / "howdah-1.zip"
    planted.mkdir(parents=True)
    (planted / "VERSION").write_text("planted")
    container = tmp_path / "container"
    container.mkdir()
    asks = Bootstrap("http://m:1", "c", bytes(32), "here", container, container / "cache")
    runtime = asks.runtime(LaunchOrder(runtime=(StagedFile(RUNTIME, uri, "archive"),)))
    assert Path(runtime, "VERSION").read_text() == "downloaded"


@pytest.mark.parametrize("error", [KeyError("x"), OSError("disk")])
def test_a_failure_of_the_executor_is_not_taken_for_one_of_the_bootstrap(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run() -> int:
        raise error

    (tmp_path / "key").write_text("00")
    for name, value in ((MASTER, "http://m:1"), (CONTAINER, "c"), (KEY_FILE, str(tmp_path / "key"))):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(bootstrap, "run_task", lambda *_: None)
    with pytest.raises(type(error)):
        bootstrap.main(OwnExecutor("python", run))
